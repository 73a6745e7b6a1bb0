#!/usr/bin/env python3
"""Counts what transformers' vision towers compute and keep for the backward pass.

usage: vision_oracle.py

Writes tests/fixtures/vision/transformers.json. Towers have published widths and fewer layers, in a
language model of one small one; of each, for one image of so many tokens: `flops` of a forward
pass of tower and merger by torch.utils.flop_counter, the embedding of patches included, and `saved`,
the bytes that torch.autograd.graph.saved_tensors_hooks sees in bf16 with fused attention (which
keeps queries, keys, values and its output), each storage once, parameters and inputs left out;
`checkpointed`: the same with gradient checkpointing of the blocks. Attention in windows computes the
pairs of each window.
Written with transformers 5.17.0 and torch 2.11.0 on a CPU.
"""
import copy
import json
import pathlib

import torch
import transformers
from torch.utils.flop_counter import FlopCounterMode

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "fixtures"
OUT = FIXTURES / "vision" / "transformers.json"
# Of a model: layers of its tower, the keys of its layers, and the sides of images in tokens.
TOWERS = {
    "qwen2.5-vl-7b": (4, {"fullatt_block_indexes": [1, 3]}, ((8, 8), (16, 12))),
    "qwen3-vl-8b": (4, {"deepstack_visual_indexes": [0, 2]}, ((8, 8), (16, 12))),
    "qwen3.5-9b": (3, {}, ((12, 16),)),
    "glm4.1v-9b": (3, {}, ((8, 8), (16, 12))),
    "gemma3-4b": (2, {}, ((16, 16),)),
    "llama4-scout": (3, {}, ((12, 12),)),
}
SMALL = dict(num_hidden_layers=1, vocab_size=64, intermediate_size=32, intermediate_size_mlp=32,
             num_local_experts=1, pad_token_id=None)


def config_of(name, layers, changes):
    stated = json.loads((FIXTURES / "models" / name / "config.json").read_text())
    text = stated.get("text_config", stated)
    text.update(SMALL)
    if "layer_types" in text:
        text["layer_types"] = text["layer_types"][-1:]
    tower = stated["vision_config"]
    tower["depth" if "depth" in tower else "num_hidden_layers"] = layers
    tower.update(changes)
    return stated


def run(model, side):
    family = model.config.model_type
    tower = model.config.vision_config
    if family in ("gemma3", "llama4"):
        pixels = torch.randn(1, 3, tower.image_size, tower.image_size, dtype=model.dtype)
        if family == "gemma3":
            seen = inner_of(model, "vision_tower")(pixel_values=pixels).last_hidden_state
            return inner_of(model, "multi_modal_projector")(seen)
        seen = inner_of(model, "vision_model")(pixel_values=pixels).last_hidden_state
        return inner_of(model, "multi_modal_projector")(seen.view(-1, seen.size(-1)))
    merge = tower.spatial_merge_size
    channels = getattr(tower, "in_channels", None) or tower.in_chans
    patches = side[0] * side[1] * merge ** 2
    width = channels * tower.temporal_patch_size * tower.patch_size ** 2
    grid = torch.tensor([[1, side[0] * merge, side[1] * merge]])
    return inner_of(model, "visual")(torch.randn(patches, width, dtype=model.dtype), grid_thw=grid)


def inner_of(model, name):
    return getattr(model, name, None) or getattr(model.model, name)


def counted(model, side):
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        run(model, side)
    return counter.get_total_flops()


def kept(model, side):
    own = {x.untyped_storage().data_ptr() for x in [*model.parameters(), *model.buffers()]}
    seen = {}

    def note(x):
        storage = x.untyped_storage()
        if storage.data_ptr() not in own:
            seen[storage.data_ptr()] = (storage.nbytes(), x)  # held, so that no address comes twice
        return x

    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        result = run(model, side)
    del result
    return sum(size for size, _ in seen.values())


def case(name):
    layers, changes, sides = TOWERS[name]
    stated = config_of(name, layers, changes)
    config = transformers.AutoConfig.for_model(**copy.deepcopy(stated))
    torch.manual_seed(0)
    cases = []
    for side in sides:
        make = transformers.AutoModelForImageTextToText.from_config
        model = make(config, attn_implementation="eager")
        flops = counted(model.eval(), side)
        model = make(config, attn_implementation="sdpa").to(torch.bfloat16).train()
        saved = kept(model, side)
        model.gradient_checkpointing_enable()
        cases.append(dict(name=name, config=stated, tokens=side[0] * side[1], flops=flops,
                          saved=saved, checkpointed=kept(model, side)))
        print(name, side, f"{flops / 1e9:.2f} GFLOP, {saved / 1e6:.1f} MB,"
              f" {cases[-1]['checkpointed'] / 1e6:.1f} MB checkpointed", flush=True)
    return cases


def main():
    cases = [each for name in TOWERS for each in case(name)]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(f'{{"transformers": "{transformers.__version__}", "torch": "{torch.__version__}", '
                   '"cases": [\n' + ",\n".join(map(json.dumps, cases)) + "\n]}\n")


if __name__ == "__main__":
    main()
