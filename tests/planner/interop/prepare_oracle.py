"""prepare_model.py before transformers: usage: prepare_oracle.py PREPARE_MODEL GPT_OSS_CONFIG QWEN3_CONFIG.

Writes tiny checkpoints of random MXFP4 and fp8 weights in the names of the published ones, two
files each, prepares them, and holds what transformers loads of the made folder against what its
own dequantization makes of the first. Prints the number of tensors that were compared.
"""
import json
import os
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, FineGrainedFP8Config, Mxfp4Config


def mxfp4(name, value):
    """A matrix of experts as blocks and scales, the transposed one; others as they are."""
    if value.dim() != 3 or "experts" not in name:
        return {name: value}
    experts, rows, columns = value.transpose(1, 2).shape
    return {name + "_blocks": torch.randint(0, 256, (experts, rows, columns // 32, 16), dtype=torch.uint8),
            name + "_scales": torch.randint(118, 130, (experts, rows, columns // 32), dtype=torch.uint8)}


def fp8(name, value):
    if not name.endswith("proj.weight"):
        return {name: value}
    blocks = [-(-size // 8) for size in value.shape]
    return {name: value.to(torch.float8_e4m3fn), name + "_scale_inv": torch.rand(blocks) + 0.5}


def write(folder, config_file, changes, stored, pack):
    with open(config_file, encoding="utf-8") as file:
        config = json.load(file) | changes
    os.makedirs(folder)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder), dtype=torch.bfloat16)
    model.save_pretrained(folder + "-plain")
    from safetensors.torch import load_file

    tensors = {}
    for name, value in load_file(os.path.join(folder + "-plain", "model.safetensors")).items():
        tensors |= pack(name, value)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config | {"quantization_config": stored}, file)
    # Every second name in the other file, so that a matrix and its scales lie apart.
    names, place = sorted(tensors), {}
    for part in range(2):
        file = f"model-0000{part + 1}-of-00002.safetensors"
        place |= dict.fromkeys(names[part::2], file)
        save_file({name: tensors[name] for name in names[part::2]}, os.path.join(folder, file), {"format": "pt"})
    with open(os.path.join(folder, "model.safetensors.index.json"), "w", encoding="utf-8") as file:
        json.dump({"metadata": {}, "weight_map": place}, file)


def compare(prepare, folder, own, *options):
    subprocess.run([sys.executable, prepare, folder, folder + "-made", *options], check=True)
    made, told = AutoModelForCausalLM.from_pretrained(folder + "-made", dtype=torch.bfloat16,
                                                      output_loading_info=True)
    assert not told["missing_keys"] and not told["unexpected_keys"], told
    expected = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16, quantization_config=own)
    expected = expected.state_dict()
    assert expected.keys() == made.state_dict().keys()
    for name, value in made.state_dict().items():
        assert torch.equal(value, expected[name].to(torch.bfloat16)), name
    return len(expected)


def main():
    prepare, gpt_oss, qwen3 = sys.argv[1:]
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        folder = os.path.join(folder, "gpt-oss")
        sizes = {"hidden_size": 64, "intermediate_size": 96}
        write(folder, gpt_oss, sizes, {"quant_method": "mxfp4"}, mxfp4)
        print(compare(prepare, folder, Mxfp4Config(dequantize=True)))
        folder = folder.replace("gpt-oss", "qwen3")
        stored = {"quant_method": "fp8", "weight_block_size": [8, 8]}
        write(folder, qwen3, {"intermediate_size": 48}, stored, fp8)
        own = FineGrainedFP8Config(weight_block_size=(8, 8), dequantize=True)
        print(compare(prepare, folder, own, "--dequantize-fp8"))


if __name__ == "__main__":
    main()
