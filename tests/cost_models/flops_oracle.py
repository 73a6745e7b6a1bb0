#!/usr/bin/env python3
"""Counts the matrix products and the cache of transformers' models, small ones of every family.

usage: flops_oracle.py

Writes tests/fixtures/flops/transformers.json. `flops`: of one forward pass over `tokens` tokens, by
torch.utils.flop_counter on the shapes of activation_oracle.py, on a CPU. Eager attention computes
all scores; a causal model needs half of its products. Gated delta nets run
torch_chunk_gated_delta_rule, whose triangular systems torch does not count: half a product of 64
rows for each right-hand side. Their convolutions, rotary tables and everything elementwise are left
out. `cached`: elements of keys and values that a further token adds, in all layers; `state`: of
what a sequence keeps whatever its length is, by type. Latent attention caches less in servers than
transformers does and is left out there.
Written with transformers 5.17.0 and torch 2.11.0.
"""
import json
import pathlib

import torch
import transformers
from torch.utils.flop_counter import FlopCounterMode

import activation_oracle

OUT = activation_oracle.OUT.parent.parent / "flops" / "transformers.json"
TOKENS = 128
CHUNK = 64
SHORT = (32, 64)
LATENT = ("deepseek_v2", "deepseek_v3")


def solved_by(config):
    """FLOPs of the triangular systems."""
    nets = (getattr(config, "layer_types", None) or []).count("linear_attention")
    if nets == 0:
        return 0
    sides = config.linear_key_head_dim + config.linear_value_head_dim
    return nets * TOKENS * CHUNK * config.linear_num_value_heads * sides


def counted(model):
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(input_ids=torch.zeros(1, TOKENS, dtype=torch.int64), use_cache=False)
    total, attention, solved = 0, 0, solved_by(model.config)
    for name, operators in counter.get_flop_counts().items():
        products = sum(n for op, n in operators.items() if "convolution" not in str(op))
        if name.count(".") == 0 and name != "Global":
            total = products
        if name.endswith((".self_attn", ".attn")):
            attention += sum(n for op, n in operators.items() if "bmm" in str(op))
        if name.endswith(".rotary_emb"):
            total -= products
    return total - attention / 2 + solved


def cache_of(model, tokens):
    with torch.no_grad():
        cache = model(input_ids=torch.zeros(1, tokens, dtype=torch.int64),
                      use_cache=True).past_key_values
    grows, kept = 0, {}
    for layer in cache.layers:
        if getattr(layer, "keys", None) is not None:
            grows += layer.keys.numel() + layer.values.numel()
        for states in (getattr(layer, "recurrent_states", None), getattr(layer, "conv_states", None)):
            for x in (states.values() if isinstance(states, dict) else states or ()):
                kept[str(x.dtype)] = kept.get(str(x.dtype), 0) + x.numel()
    return grows, kept


def case(family, shape):
    config = activation_oracle.config_of(family, shape, 4 if family in activation_oracle.KINDS else 1,
                                         None)
    config._experts_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    model.eval()
    result = dict(family=family, tokens=TOKENS, flops=counted(model),
                  config=activation_oracle.stated(family, shape))
    if family not in LATENT:
        few, many = (cache_of(model.to(torch.bfloat16), n) for n in SHORT)  # than any window
        assert few[1] == many[1]
        result.update(cached=(many[0] - few[0]) // (SHORT[1] - SHORT[0]), state=many[1])
    return result


def main():
    cases = []
    for family, (shapes, _) in activation_oracle.FAMILIES.items():
        cases += [case(family, shape) for shape in shapes]
        print(family, len(cases), flush=True)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(f'{{"transformers": "{transformers.__version__}", "torch": "{torch.__version__}", '
                   '"cases": [\n' + ",\n".join(map(json.dumps, cases)) + "\n]}\n")


if __name__ == "__main__":
    main()
