#!/usr/bin/env python3
"""Makes tests/executor/rl/verl_validation.json: what verl 0.9.1 itself makes of randomly drawn
results of reward functions. They go through its reward managers (experimental/reward_loop/reward_manager)
into its validation metrics (trainer/ppo/metric_utils.py, RayPPOTrainer._val_metrics_update). The functions
are taken from verl's source files as they stand, so that only numpy is needed.

usage: python3 scripts/make_validation_vectors.py VERL_FOLDER [FILE]
VERL_FOLDER is the folder of the installed package (site-packages/verl).
"""
import ast
import asyncio
import json
import logging
import random
import sys
from collections import defaultdict
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

import numpy as np

FUNCTIONS = {"trainer/ppo/metric_utils.py": {"bootstrap_metric", "calc_maj_val", "process_validation_metrics"},
             "trainer/ppo/ray_trainer.py": {"_val_metrics_update"}}
MANAGERS = ["naive", "dapo", "gdpo", "limited", "remote"]
SPACE = {"np": np, "defaultdict": defaultdict, "partial": partial, "Any": Any, "Callable": Callable,
         "asyncio": asyncio, "logger": logging.getLogger(), "DataProto": object}
RESPONSE, LONGEST, BUFFER = 8, 10, 4  # tokens: dapo's penalty of a response is -0.5


def take(file, names, space):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name in names:
            exec(compile(ast.Module([node], []), str(file), "exec"), space)
    return space


class Item:
    """A DataProto of one response, whose ground truth is what the reward function will return."""

    def __init__(self, result):
        self.batch = {"responses": np.arange(RESPONSE), "attention_mask": np.ones(2 * RESPONSE, dtype=int)}
        self.non_tensor_batch = {"data_source": "s", "reward_model": {"ground_truth": result}, "extra_info": {}}

    def __getitem__(self, _):
        return self


async def at_once(_, function):
    return function()


async def scored_by_worker(ground_truth, **_):
    return ground_truth


def manager_of(verl, name):
    """result of a reward function -> (reward, extra infos), by the manager's own run_single."""
    names = {"run_single", "_compute_reward"}
    methods = take(verl / "experimental/reward_loop/reward_manager" / f"{name}.py", names, dict(SPACE))
    manager = type(name, (), {method: methods[method] for method in names if method in methods})()
    manager.__dict__.update(
        compute_score=lambda ground_truth, **_: ground_truth, is_async_reward_score=False,
        loop=SimpleNamespace(run_in_executor=at_once), tokenizer=SimpleNamespace(decode=lambda ids, **_: str(ids)),
        reward_router_address=None, reward_model_tokenizer=None,
        config=SimpleNamespace(trainer=SimpleNamespace(experiment_name="e")),
        max_resp_len=LONGEST,
        overlong_buffer_cfg=SimpleNamespace(enable=True, len=BUFFER, penalty_factor=1.0, log=False),
        choose_reward_worker=lambda: SimpleNamespace(compute_score=SimpleNamespace(remote=scored_by_worker)),
        _rpm_limiter=None, _tpm_limiter=None, _semaphore=asyncio.Semaphore(1), timeout=60)

    def score(result):
        said = asyncio.run(manager.run_single(Item(result)))
        return float(said["reward_score"]), said["reward_extra_info"]
    return score


def result_of(draw, variables, answer):
    """What a reward function may return: a number, or a map with a score."""
    score = draw.choice([0.0, 1.0, -1.0, True, round(draw.random(), 3)])
    if variables is None:
        return score
    result = {"score": float(score), **{name: draw.choice([0.0, 1.0, draw.random()]) for name in variables}}
    return result | ({} if answer is ... else {"pred": answer})


def numbers_of(infos):
    return {name: float(value) for name, value in infos.items() if isinstance(value, (bool, int, float))}


def case(draw, manager, update):
    sources = [f"source/{i}" for i in range(draw.randint(1, 3))]
    plain = draw.random() < 0.3
    variables = None if plain else draw.sample(["acc", "format", "judge"], draw.randint(0, 3))
    with_answers, missing = not plain and draw.random() < 0.8, draw.random() < 0.3
    even = draw.choice([None, 1, 2, 3, 5, 8, 16])
    samples, infos = [], defaultdict(list)
    for prompt in range(draw.randint(1, 6)):
        source = draw.choice(sources)
        for _ in range(even or draw.randint(1, 12)):
            answer = draw.choice(["7", "8", "9", "-1"]) if with_answers else ...
            if with_answers and missing and draw.random() < 0.1:
                answer = None
            reward, extra = manager(result_of(draw, variables, answer))
            for name, value in ({"reward": reward} | extra).items():
                infos[name].append(value)
            samples.append({"data_source": source, "uid": f"{source}-{prompt}",
                            "values": {"reward": reward} | numbers_of(extra),
                            "answer": None if answer is ... else answer})
    metrics = update(None, np.array([s["data_source"] for s in samples], dtype=object),
                     [s["uid"] for s in samples], dict(infos), [])
    return {"samples": samples, "metrics": {name: float(value) for name, value in metrics.items()}}


def accuracies(draw, managers):
    """What each manager calls acc of a result; none = nothing."""
    said = []
    for name, manager in managers.items():
        for variables in [None, None, None, [], ["acc"], ["format"], ["acc", "format"]]:
            result = result_of(draw, variables, draw.choice(["7", ...]))
            reward, infos = manager(result)
            said.append({"manager": name, "result": result, "reward": reward,
                         "acc": float(infos["acc"]) if "acc" in infos else None})
    return said


def main():
    verl = Path(sys.argv[1])
    out = Path(sys.argv[2] if len(sys.argv) > 2 else "tests/executor/rl/verl_validation.json")
    space = dict(SPACE)
    for file, names in FUNCTIONS.items():
        take(verl / file, names, space)
    managers = {name: manager_of(verl, name) for name in MANAGERS}
    draw = random.Random(1)
    cases = [case(draw, managers[draw.choice(MANAGERS)], space["_val_metrics_update"]) for _ in range(60)]
    said = accuracies(draw, managers)
    out.write_text(json.dumps({"source": "verl 0.9.1", "accuracies": said, "cases": cases}) + "\n")
    print(f"{len(cases)} cases, {sum(len(c['metrics']) for c in cases)} numbers, {len(said)} results")


if __name__ == "__main__":
    main()
