#!/usr/bin/env python3
"""Counts the matrix products and the cache of transformers' models, small ones of every family.

usage: flops_oracle.py

Writes tests/fixtures/flops/transformers.json. `flops`: of one forward pass over `tokens` tokens, by
torch.utils.flop_counter on the shapes of activation_oracle.py, on a CPU. Eager attention computes
all scores; a causal model needs half of its products. Gated delta nets run
torch_chunk_gated_delta_rule, whose triangular systems torch does not count: half a product of 64
rows for each right-hand side. State-space mixers run scan_by_products, which is compared with
transformers' own scan (elementwise, so that nothing would be counted). Convolutions, rotary tables and everything elementwise are left
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
from transformers.models.nemotron_h import modeling_nemotron_h

import activation_oracle

OUT = activation_oracle.OUT.parent.parent / "flops" / "transformers.json"
TOKENS = 128
CHUNK = 64
SHORT = (32, 64)
LATENT = ("deepseek_v2", "deepseek_v3", "deepseek_v32", "glm_moe_dsa", "glm4_moe_lite")
ENTRIES = ("deepseek_v4",)  # grow once in several tokens


def solved_by(config):
    """FLOPs of the triangular systems."""
    nets = (getattr(config, "layer_types", None) or []).count("linear_attention")
    if nets == 0 or not hasattr(config, "linear_key_head_dim"):
        return 0
    sides = config.linear_key_head_dim + config.linear_value_head_dim
    return nets * TOKENS * CHUNK * config.linear_num_value_heads * sides


def scan_by_products(x, dt, A, B, C, chunk_size, D, dt_bias, dt_limit, **_):
    """A state-space scan in matrix products, chunk by chunk (Dao and Gu 2024, arXiv:2405.21060,
    section 6): scores within a chunk by group, what they weight, the chunk's states and what they
    give by head. Whole chunks; final states are not returned."""
    batch, length, heads, width = x.shape
    groups, size = B.shape[2:]
    chunks, each = length // chunk_size, heads // groups
    dt = torch.nn.functional.softplus(dt + dt_bias.to(dt.dtype)).clamp(*dt_limit)
    decay = (A * dt.float()).view(batch, chunks, chunk_size, heads).permute(0, 3, 1, 2).cumsum(-1)
    x_in = (x.float() * dt[..., None].float()).view(batch, chunks, chunk_size, heads, width)
    x_in = x_in.permute(0, 3, 1, 2, 4)  # batch, head, chunk, token, width
    b, c = (y.float().view(batch, chunks, chunk_size, groups, size).permute(0, 3, 1, 2, 4)
            for y in (B, C))

    def product(left, right):
        shape = left.shape[:-2]
        return torch.bmm(left.reshape(-1, *left.shape[-2:]),
                         right.reshape(-1, *right.shape[-2:])).view(*shape, left.shape[-2], -1)

    def by_head(y):
        return y.repeat_interleave(each, dim=1)

    later = torch.ones(chunk_size, chunk_size).tril().log()
    within = (decay[..., :, None] - decay[..., None, :] + later).exp()
    out = product(by_head(product(c, b.transpose(-1, -2))) * within, x_in)
    left = (decay[..., -1:] - decay).exp()[..., None]
    added = product((by_head(b) * left).transpose(-1, -2), x_in)  # of each chunk: size x width
    state, before = torch.zeros_like(added[:, :, 0]), []
    for chunk in range(chunks):
        before.append(state)
        state = state * decay[:, :, chunk, -1].exp()[..., None, None] + added[:, :, chunk]
    out = out + product(by_head(c) * decay.exp()[..., None], torch.stack(before, 2))
    out = out.permute(0, 2, 3, 1, 4).reshape(batch, length, heads, width)
    return out + D[:, None] * x.float()


def compare_scans():
    theirs = modeling_nemotron_h.mamba2_chunk_scan
    torch.manual_seed(0)
    x, dt, b, c = (torch.randn(2, 64, *shape) for shape in ((6, 8), (6,), (3, 5), (3, 5)))
    given = dict(D=torch.randn(6), dt_bias=torch.randn(6), dt_limit=(0.001, float("inf")))
    A = -torch.rand(6)
    expected = theirs(x, dt, A, b, c, 16, dt_softplus=True, **given)
    torch.testing.assert_close(scan_by_products(x, dt, A, b, c, 16, **given), expected)


def counted_scan(theirs):
    """Their scan where final states are asked for, whose products nobody counts."""
    return lambda *inputs, return_final_states, chunk_size, initial_states, dt_softplus, **given: (
        theirs(*inputs, chunk_size=chunk_size, return_final_states=True, dt_softplus=dt_softplus,
               initial_states=initial_states, **given)
        if return_final_states else scan_by_products(*inputs, chunk_size, **given))


def whole_scores(name, config):
    """Whether the module is attention that computes scores of all pairs: MiniMax's linear attention
    is of that name, too."""
    if not name.endswith((".self_attn", ".attn") + attention_of_blocks(config)):
        return False
    linear = config.model_type == "minimax" and name.endswith(".self_attn") and (
        config.layer_types[int(name.split(".")[-2])] == "linear_attention")
    return not linear


def attention_of_blocks(config):
    """Which modules are attention where every layer is one block."""
    kinds = getattr(config, "layers_block_type", None) or []
    return tuple(f".layers.{i}.mixer" for i, kind in enumerate(kinds) if kind == "full_attention")


def counted(model):
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(input_ids=torch.zeros(1, TOKENS, dtype=torch.int64), use_cache=False)
    total, rotary, attention, solved = 0, 0, 0, solved_by(model.config)
    for name, operators in counter.get_flop_counts().items():
        products = sum(n for op, n in operators.items() if "convolution" not in str(op))
        if name.count(".") == 0 and name != "Global":
            total = products
        if whole_scores(name, model.config):
            attention += sum(n for op, n in operators.items() if "bmm" in str(op))
        if name.endswith((".rotary_emb", ".o_a_proj")) and ".self_attn." in name:
            attention -= products  # within the module, and no scores
        if name.endswith(".rotary_emb"):
            rotary += products
    return total - rotary - attention / 2 + solved


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
                if x is None:  # of a layer that is an MLP
                    continue
                kept[str(x.dtype)] = kept.get(str(x.dtype), 0) + x.numel()
    for x in getattr(cache, "linear_cache", ()):  # MiniMax's, and [] of its other layers
        if len(x):
            kept[str(x.dtype)] = kept.get(str(x.dtype), 0) + x.numel()
    return grows, kept


# Llama 4's class computes every expert for every token, and DeepSeek-V3.2's all scores: a token
# chooses all of either.
ALL = {"llama4_text": lambda shape: dict(num_experts_per_tok=shape["num_local_experts"]),
       "deepseek_v32": lambda shape: dict(index_topk=TOKENS),
       "glm_moe_dsa": lambda shape: dict(index_topk=TOKENS),
       "deepseek_v4": lambda shape: dict(index_topk=TOKENS, sliding_window=TOKENS)}


def case(family, shape):
    shape = {**shape, **ALL.get(family, lambda _: {})(shape)}
    hybrid = family in activation_oracle.KINDS or family in activation_oracle.ALONE
    config = activation_oracle.config_of(family, shape, 4 if hybrid else 1, None)
    config._experts_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    model.eval()
    result = dict(family=family, tokens=TOKENS, flops=counted(model),
                  config=activation_oracle.stated(family, shape))
    if family not in LATENT + ENTRIES:
        few, many = (cache_of(model.to(torch.bfloat16), n) for n in SHORT)  # than any window
        assert few[1] == many[1]
        result.update(cached=(many[0] - few[0]) // (SHORT[1] - SHORT[0]), state=many[1])
    return result


def main():
    compare_scans()
    modeling_nemotron_h.mamba2_chunk_scan = counted_scan(modeling_nemotron_h.mamba2_chunk_scan)
    cases = []
    for family, (shapes, _) in activation_oracle.FAMILIES.items():
        cases += [case(family, shape) for shape in shapes]
        print(family, len(cases), flush=True)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(f'{{"transformers": "{transformers.__version__}", "torch": "{torch.__version__}", '
                   '"cases": [\n' + ",\n".join(map(json.dumps, cases)) + "\n]}\n")


if __name__ == "__main__":
    main()
