#!/usr/bin/env python3
"""Writes tests/executor/rl/min_p.json: which tokens transformers' warpers keep of random logits.

The warpers run in the order in which transformers' generation has them: temperature, top-k, top-p,
min-p. Rows in which a token lies within 1e-5 of a threshold are left out, as fp32 decides them.

    .venv/bin/python3 scripts/make_min_p_vectors.py
"""
import json
import pathlib
import random

import torch
import transformers
from transformers.generation.logits_process import (
    MinPLogitsWarper, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper)


def kept(logits, options):
    warpers = [TemperatureLogitsWarper(options["temperature"])]
    if options["top_k"] > 0:
        warpers.append(TopKLogitsWarper(options["top_k"]))
    if options["top_p"] < 1:
        warpers.append(TopPLogitsWarper(options["top_p"]))
    warpers.append(MinPLogitsWarper(options["min_p"]))
    scores = torch.tensor([logits])
    for warper in warpers:
        scores = warper(None, scores)
    return [token for token, score in enumerate(scores[0].tolist()) if score > -float("inf")]


def main():
    dice = random.Random(5)
    cases = []
    while len(cases) < 120:
        logits = [round(dice.gauss(0, 2), 3) for _ in range(dice.randrange(2, 40))]
        options = {"temperature": dice.choice([0.5, 0.8, 1.0, 1.5]),
                   "top_k": dice.choice([0, 0, 5, 12]), "top_p": dice.choice([1.0, 1.0, 0.7, 0.95]),
                   "min_p": dice.choice([0.001, 0.02, 0.1, 0.3, 0.9])}
        near = [dict(options, min_p=options["min_p"] * (1 + e),
                     top_p=min(1.0, options["top_p"] * (1 + e)))
                for e in (-1e-5, 1e-5)]
        tokens = kept(logits, options)
        if all(kept(logits, other) == tokens for other in near):
            cases.append({"logits": logits, **options, "kept": tokens})
    file = pathlib.Path(__file__).parent.parent / "tests/executor/rl/min_p.json"
    lines = ",\n".join(json.dumps(case) for case in cases)
    file.write_text(f'{{"transformers": "{transformers.__version__}", "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
