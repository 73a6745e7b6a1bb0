"""Oracle of compare_weights_test.cc: torch and safetensors write pairs of folders and say where they differ.

weights_oracle.py DIR    DIR/NAME/a, DIR/NAME/b and DIR/cases.json: [{name, as, differences}]
"""
import json
import os
import random
import sys

import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel, Qwen2Config, Qwen2ForCausalLM

ROOT = sys.argv[1]
CONFIG = dict(vocab_size=101, hidden_size=32, intermediate_size=56, num_hidden_layers=3,
              num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64)
UP = "model.layers.1.mlp.up_proj.weight"
BIAS = "model.layers.2.self_attn.k_proj.bias"
draw = random.Random(3)


def weights(tied=False):
    torch.manual_seed(0)
    model = Qwen2ForCausalLM(Qwen2Config(**CONFIG, tie_word_embeddings=tied)).to(torch.bfloat16)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for name, tensor in state.items():  # no two tensors alike
        if tensor.dim() == 1:
            tensor.normal_()
    if tied:
        del state["lm_head.weight"]
    return state


def write(folder, state, files, tied=False, config=None):
    """Tensors dealt to the files at random."""
    os.makedirs(folder)
    config = config or Qwen2Config(**CONFIG, tie_word_embeddings=tied, architectures=["Qwen2ForCausalLM"])
    config.save_pretrained(folder)
    names = list(state)
    draw.shuffle(names)
    if files == 1:
        save_file({n: state[n] for n in names}, f"{folder}/model.safetensors", {"format": "pt"})
        return
    weight_map = {}
    for i in range(files):
        name = f"part-{i}.safetensors"
        mine = names[i::files]
        save_file({n: state[n].contiguous() for n in mine}, f"{folder}/{name}")
        weight_map.update({n: name for n in mine})
    total = sum(t.numel() * t.element_size() for t in state.values())
    with open(f"{folder}/model.safetensors.index.json", "w") as out:
        json.dump({"metadata": {"total_size": total}, "weight_map": weight_map}, out)


def bits(tensor):
    integer = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    return tensor.contiguous().view(integer).flatten()


def differences(a, b, cast):
    found = []
    for name in sorted(a.keys() | b.keys()):
        if name not in a or name not in b:
            found.append({"tensor": name, "fault": "only_in_a" if name in a else "only_in_b"})
            continue
        x, y = a[name], b[name]
        if x.shape != y.shape:
            found.append({"tensor": name, "fault": "shape", "a": str(list(x.shape)), "b": str(list(y.shape))})
            continue
        if cast:
            x, y = x.to(cast), y.to(cast)
        if x.dtype != y.dtype:
            short = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
            found.append({"tensor": name, "fault": "dtype", "a": short[x.dtype], "b": short[y.dtype]})
            continue
        differ = (bits(x) != bits(y)).nonzero().flatten()
        if len(differ):
            width = x.element_size()
            found.append({"tensor": name, "fault": "values", "first_byte": int(differ[0]) * width,
                          "bytes": int(differ[-1] - differ[0] + 1) * width, "elements": len(differ),
                          "tensor_bytes": x.numel() * width})
    return found


cases = []


def case(name, a, b, cast=None, tied=(False, False), expected=None, config=None):
    write(f"{ROOT}/{name}/a", a, draw.choice([1, 2, 5]), tied[0], config)
    write(f"{ROOT}/{name}/b", b, draw.choice([1, 3, 4]), tied[1], config)
    types = {None: "", torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
    cases.append({"name": name, "as": types[cast],
                  "differences": differences(a, b, cast) if expected is None else expected})


def changed(**tensors):
    state = weights()
    for name, change in tensors.items():
        name = {"up": UP, "bias": BIAS}[name]
        change(state[name])
    return state


def flip(index, bit):
    def change(tensor):
        tensor.view(torch.int16).flatten()[index] ^= bit
    return change


def swap_rows(tensor):
    tensor[[3, 40]] = tensor[[40, 3]]


case("equal", weights(), weights())
case("one_bit", weights(), changed(up=flip(777, 1)))
case("sign_of_zero", changed(bias=lambda t: t.zero_()), changed(bias=lambda t: t.fill_(-0.0)))
case("stale", weights(), changed(up=lambda t: t.mul_(1.01)))
case("swapped_rows", weights(), changed(up=swap_rows))
case("missed_bias", weights(), {n: t for n, t in weights().items() if n != BIAS})
case("extra", weights(), weights() | {"extra.weight": torch.ones(2, 3)})
case("shape", weights(), weights() | {BIAS: torch.zeros(17, dtype=torch.bfloat16)})
case("reshaped", weights(), weights() | {UP: weights()[UP].t().contiguous()})
case("dtype", weights(), weights() | {UP: weights()[UP].float()})
case("several", changed(up=flip(0, 4), bias=flip(3, 2)), changed(up=flip(1791, 8)))

masters = {n: t.float() + torch.rand(t.shape) * 1e-9 for n, t in weights().items()}
case("rounded", masters, weights(), torch.bfloat16)
case("widened", masters, weights(), torch.float32)
case("half", masters, weights(), torch.float16)
case("rounded_fault", masters, changed(up=flip(5, 1)), torch.bfloat16)

tied = weights(True)
head = {"lm_head.weight": tied["model.embed_tokens.weight"].clone()}
case("tied_both", tied, weights(True), tied=(True, True))
case("tied_one", tied, tied | head, tied=(True, False), expected=[])
other = {"lm_head.weight": head["lm_head.weight"] * 2}
case("tied_wrong", tied, tied | other, tied=(True, False),
     expected=differences(tied | head, tied | other, None))
gpt2 = GPT2Config(vocab_size=101, n_embd=32, n_layer=2, n_head=4, n_positions=64,
                  architectures=["GPT2LMHeadModel"])  # tied, and the embedding has another name
whole = {name: tensor.clone() for name, tensor in GPT2LMHeadModel(gpt2).state_dict().items()}
case("tied_other_name", {n: t for n, t in whole.items() if n != "lm_head.weight"}, whole, expected=[], config=gpt2)
case("frequencies", weights(), weights() | {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4)},
     expected=[])

with open(f"{ROOT}/cases.json", "w") as out:
    json.dump(cases, out)
