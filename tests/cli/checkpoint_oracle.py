"""Oracle of resume_test.cc: python checkpoint_oracle.py CHECKPOINT HF_FOLDER

Reads every rank's file with safetensors, puts the pieces of each tensor together, and compares:
every element is there exactly once; the actor's master weights, cast to the model's type, are those
that transformers loads from the Hugging Face folder of the same step; moments are finite, and the
second ones not negative.
"""
import json
import pathlib
import re
import sys

import torch
from safetensors import safe_open
from transformers import AutoModelForCausalLM

PIECE = re.compile(r"^(\w+)\.(master|exp_avg|exp_avg_sq)/(.+)\[([0-9:,]*)\]$")
TRANSPOSED = ("o_proj.weight", "down_proj.weight")


def pieces_of(folder, manifest):
    for entry in manifest["files"]:
        with safe_open(folder / entry["name"], framework="pt") as file:
            for name in file.keys():
                match = PIECE.match(name)
                if match is None:
                    assert name == "generator.cpu", name
                    continue
                role, state, tensor, box = match.groups()
                value = file.get_tensor(name)
                assert value.dtype == torch.float32, name
                if tensor.endswith(TRANSPOSED):
                    value = value.movedim(0, 1)
                ranges = [tuple(map(int, part.split(":"))) for part in box.split(",")]
                assert list(value.shape) == [hi - lo for lo, hi in ranges], name
                yield (role, state, tensor), ranges, value


def assembled(folder, manifest):
    pieces = {}
    for key, ranges, value in pieces_of(folder, manifest):
        pieces.setdefault(key, []).append((ranges, value))
    whole = {}
    for key, parts in pieces.items():
        shape = [max(ranges[d][1] for ranges, _ in parts) for d in range(len(parts[0][0]))]
        tensor, times = torch.zeros(shape), torch.zeros(shape, dtype=torch.int32)
        for ranges, value in parts:
            at = tuple(slice(lo, hi) for lo, hi in ranges)
            tensor[at] = value
            times[at] += 1
        assert bool((times == 1).all()), key
        whole[key] = tensor
    return whole


def main(checkpoint, hf):
    folder = pathlib.Path(checkpoint)
    manifest = json.loads((folder / "checkpoint.json").read_text())
    whole = assembled(folder, manifest)
    model = AutoModelForCausalLM.from_pretrained(hf, dtype="auto")
    state = model.state_dict()
    actor = {name: tensor for (role, kind, name), tensor in whole.items()
             if (role, kind) == ("actor", "master")}
    assert sum(t.numel() for t in actor.values()) == manifest["roles"]["actor"]["parameters"]
    for name, tensor in actor.items():
        assert torch.equal(tensor.to(state[name].dtype), state[name]), name
    assert set(state) - set(actor) <= {"lm_head.weight"}, set(state) - set(actor)
    for (role, kind, name), tensor in whole.items():
        assert bool(tensor.isfinite().all()), (role, kind, name)
        assert kind != "exp_avg_sq" or bool((tensor >= 0).all()), (role, name)
        shape = whole[(role, "master", name)].shape
        assert tensor.shape == shape, (role, kind, name)
    assert {role for role, _, _ in whole} == {"actor", "critic"}
    moved = [key for key, t in whole.items() if key[1] == "exp_avg" and bool((t != 0).any())]
    assert len(moved) > len(actor), "the first moments have moved"


main(*sys.argv[1:])
