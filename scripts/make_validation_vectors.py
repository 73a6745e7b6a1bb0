#!/usr/bin/env python3
"""Makes tests/executor/rl/verl_validation.json: what verl 0.9.1 itself makes of randomly drawn
validation samples. The functions are taken from verl's source files as they stand
(trainer/ppo/metric_utils.py, RayPPOTrainer._val_metrics_update), so that only numpy is needed.

usage: python3 scripts/make_validation_vectors.py VERL_FOLDER [FILE]
VERL_FOLDER is the folder of the installed package (site-packages/verl).
"""
import ast
import json
import random
import sys
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any, Callable

import numpy as np

FUNCTIONS = {"trainer/ppo/metric_utils.py": {"bootstrap_metric", "calc_maj_val", "process_validation_metrics"},
             "trainer/ppo/ray_trainer.py": {"_val_metrics_update"}}


def functions_of(verl):
    space = {"np": np, "defaultdict": defaultdict, "partial": partial, "Any": Any, "Callable": Callable}
    for file, names in FUNCTIONS.items():
        for node in ast.walk(ast.parse((verl / file).read_text())):
            if isinstance(node, ast.FunctionDef) and node.name in names:
                exec(compile(ast.Module([node], []), file, "exec"), space)
    return space


def case(draw, update):
    sources = [f"source/{i}" for i in range(draw.randint(1, 3))]
    variables = draw.sample(["acc", "format", "judge"], draw.randint(0, 3))
    with_answers, missing = draw.random() < 0.7, draw.random() < 0.3
    even = draw.choice([None, 1, 2, 3, 5, 8, 16])
    samples = []
    for prompt in range(draw.randint(1, 6)):
        source = draw.choice(sources)
        for _ in range(even or draw.randint(1, 12)):
            values = {"reward": draw.choice([0.0, 1.0, -1.0, round(draw.random(), 3)])}
            values.update({name: draw.choice([0.0, 1.0, draw.random()]) for name in variables})
            answer = draw.choice(["7", "8", "9", "-1"]) if with_answers else None
            if missing and draw.random() < 0.1:
                answer = None
            samples.append({"data_source": source, "uid": f"{source}-{prompt}", "values": values, "answer": answer})
    infos = {"reward": [s["values"]["reward"] for s in samples]}
    for name in variables:
        infos[name] = [s["values"][name] for s in samples]
    if with_answers:
        infos["pred"] = [s["answer"] for s in samples]
    metrics = update(None, np.array([s["data_source"] for s in samples], dtype=object),
                     [s["uid"] for s in samples], infos, [])
    return {"samples": samples, "metrics": {name: float(value) for name, value in metrics.items()}}


def main():
    verl = Path(sys.argv[1])
    out = Path(sys.argv[2] if len(sys.argv) > 2 else "tests/executor/rl/verl_validation.json")
    update = functions_of(verl)["_val_metrics_update"]
    draw = random.Random(1)
    cases = [case(draw, update) for _ in range(60)]
    out.write_text(json.dumps({"source": "verl 0.9.1", "cases": cases}) + "\n")
    print(f"{len(cases)} cases, {sum(len(c['metrics']) for c in cases)} numbers")


if __name__ == "__main__":
    main()
