// A script beside exported files: it makes the folder of a model whose weights are quantized, as
// verl's trainers take it.
//
// A text of static lifetime.
#pragma once

#include <string_view>

namespace tessera {

inline constexpr std::string_view kPrepareModel = "prepare_model.py";

/// What verl's examples for DeepSeek-V3 and gpt-oss ask to be done by hand: config.json without
/// quantization_config, so that rollouts hold the type that the trainer sends, and without layers
/// of multi-token prediction where nobody uses them. Weights in MXFP4 become bf16, those in fp8
/// where --dequantize-fp8 says so; everything else of the folder is linked.
inline constexpr std::string_view kPrepareModelText = R"(#!/usr/bin/env python3
"""Makes the folder of a model as verl's trainers take it.

usage: prepare_model.py MODEL NEW_FOLDER [--with-mtp] [--dequantize-fp8]
  MODEL  a folder, or a name on the Hugging Face hub

config.json is written without quantization_config (rollouts then hold the type that the trainer
sends) and without layers of multi-token prediction unless --with-mtp says so. Weights in MXFP4
(gpt-oss) are written in bf16; those in fp8 with --dequantize-fp8, without which they are links:
mbridge, which Megatron loads DeepSeek-V3 by, dequantizes them itself. All other files are links.
Dequantizing needs torch and safetensors, and the memory of one file.
"""
import json
import os
import sys

FP4 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)


def from_mxfp4(blocks, scales):
    """[experts, out, groups, 16] bytes of two numbers and an exponent a group, as transformers has
    the matrix: [experts, in, out]."""
    import torch

    pairs = torch.stack((blocks & 15, blocks >> 4), -1).flatten(-2).long()
    numbers = torch.tensor(FP4)[pairs] * torch.exp2(scales.float() - 127).unsqueeze(-1)
    return numbers.flatten(-2).transpose(1, 2).to(torch.bfloat16).contiguous()


def from_fp8(weight, inverse, block):
    import torch

    rows, columns = weight.shape[-2:]
    scale = inverse.float().repeat_interleave(block[0], -2)[..., :rows, :]
    scale = scale.repeat_interleave(block[1], -1)[..., :columns]
    return (weight.float() * scale).to(torch.bfloat16)


def dequantize(model, made, block):
    from safetensors import safe_open
    from safetensors.torch import save_file

    files = sorted(name for name in os.listdir(model) if name.endswith(".safetensors"))
    readers = {name: safe_open(os.path.join(model, name), "pt") for name in files}
    place = {tensor: name for name, reader in readers.items() for tensor in reader.keys()}
    written, size = {}, 0

    def read(tensor):
        return readers[place[tensor]].get_tensor(tensor)

    for name, reader in readers.items():
        tensors = {}
        for tensor in reader.keys():
            packed = tensor.removesuffix("_blocks") + "_scales"
            if tensor.endswith("_blocks") and packed in place:
                tensors[tensor.removesuffix("_blocks")] = from_mxfp4(read(tensor), read(packed))
            elif tensor.endswith("_scales") and tensor.removesuffix("_scales") + "_blocks" in place:
                continue
            elif tensor.endswith("_scale_inv") and tensor.removesuffix("_scale_inv") in place:
                continue
            else:
                value = read(tensor)
                if tensor + "_scale_inv" in place:
                    value = from_fp8(value, read(tensor + "_scale_inv"), block)
                elif "float8" in str(value.dtype) or "float4" in str(value.dtype):
                    sys.exit(f"{name}: found {tensor} in {value.dtype} without {tensor}_scale_inv,"
                             " expected fp8 in blocks: take a checkpoint in bf16")
                tensors[tensor] = value
        if tensors:
            save_file(tensors, os.path.join(made, name), {"format": "pt"})
        written.update(dict.fromkeys(tensors, name))
        size += sum(value.numel() * value.element_size() for value in tensors.values())
    with open(os.path.join(made, "model.safetensors.index.json"), "w", encoding="utf-8") as file:
        json.dump({"metadata": {"total_size": size}, "weight_map": written}, file, indent=2)


def prepare(model, made, with_mtp, dequantize_fp8):
    if not os.path.isdir(model):
        from huggingface_hub import snapshot_download

        model = snapshot_download(model)
    with open(os.path.join(model, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    stored = config.pop("quantization_config", None) or {}
    method = stored.get("quant_method", "fp8")
    if method not in ("fp8", "mxfp4"):
        sys.exit(f"config.json: found quant_method {method}, expected fp8 or mxfp4: take a"
                 " checkpoint of the model in bf16")
    made_new = method == "mxfp4" or dequantize_fp8
    if made_new and not any(name.endswith(".safetensors") for name in os.listdir(model)):
        sys.exit(f"{model}: found no .safetensors, expected weights to dequantize")
    os.makedirs(made)
    for name in sorted(os.listdir(model)):
        weights = name.endswith((".safetensors", ".safetensors.index.json"))
        if name != "config.json" and not (made_new and weights):
            os.symlink(os.path.realpath(os.path.join(model, name)), os.path.join(made, name))
    if made_new:
        dequantize(model, made, stored.get("weight_block_size") or (128, 128))
    if "num_nextn_predict_layers" in config and not with_mtp:
        config["num_nextn_predict_layers"] = 0
    with open(os.path.join(made, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2)
        file.write("\n")


if __name__ == "__main__":
    options = ("--with-mtp", "--dequantize-fp8")
    arguments = [word for word in sys.argv[1:] if word not in options]
    if len(arguments) != 2:
        sys.exit(__doc__)
    prepare(*arguments, *(option in sys.argv for option in options))
)";

}  // namespace tessera
