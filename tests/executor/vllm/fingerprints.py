"""The values that tests of vLLM's workers fill tensors with, and their bits."""

import torch


def tensor_of(index, shape, dtype):
    """The fingerprints of layout_cases.h: every element of the model is another one."""
    count = torch.Size(shape).numel()
    words = 100003 * index + 1 + torch.arange(count, dtype=torch.int64)
    return words.to(torch.int32).view(dtype).reshape(shape)


def bits(tensor):
    return tensor.contiguous().view(torch.int32)
