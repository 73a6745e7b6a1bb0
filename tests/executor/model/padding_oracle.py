"""transformers' gradients of the loss of gradients_test.cc where the model has a pad_token_id.

    padding_oracle.py MODEL PAD OUT.safetensors
"""

import sys

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

SEQUENCES = [[1, 5, 9, 2, 6, 5], [3, 5, 8], [9, 7, 9]]
TEMPERATURE = 0.8

folder, pad, out = sys.argv[1:]
config = AutoConfig.from_pretrained(folder, pad_token_id=int(pad))
model = AutoModelForCausalLM.from_pretrained(folder, config=config, dtype=torch.float32)
assert model.get_input_embeddings().padding_idx == int(pad)
loss, first = 0, 1
for ids in SEQUENCES:
    ids = torch.tensor(ids)
    scores = (model(ids[None], use_cache=False).logits[0] / TEMPERATURE).log_softmax(-1)
    targets = (ids * 7 + 3) % config.vocab_size
    slope = torch.arange(first, first + len(ids)).float().cos()
    entropy = -(scores.exp() * scores).sum(-1)
    loss = loss + (scores[torch.arange(len(ids)), targets] * slope + 0.3 * entropy).sum()
    first += len(ids)
loss.backward()
save_file({name: p.grad.contiguous() for name, p in model.named_parameters()}, out)
