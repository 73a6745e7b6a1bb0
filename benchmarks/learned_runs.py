#!/usr/bin/env python3
"""Learns calibrations from the runs in benchmarks/results, and prints what is held out.

    benchmarks/learned_runs.py build/release/cli/tessera [FOLDER]

Every run becomes a folder with the plan that its options ask for and a metrics.jsonl of the phases that
were measured; FOLDER keeps them. Sets of runs that belong together (one engine, one machine) are learned
together: `tessera learn` holds each of several runs out in turn, of one run its later steps.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks/results"


def results(name):
    return json.loads((RESULTS / f"{name}.json").read_text())


def cluster(folder, gpus):
    text = (ROOT / "configs/clusters/h200-8.yaml").read_text()
    text = re.sub(r"(?m)^gpus_per_node:.*$", f"gpus_per_node: {gpus}", text)
    text = re.sub(r"(?m)^  nics_per_node:.*$", f"  nics_per_node: {gpus}", text)
    path = folder / f"h200-{gpus}.yaml"
    path.write_text(text)
    return path


def workload(folder, prompts, samples, prompt, response):
    path = folder / "workload.yaml"
    path.write_text(
        f"version: 1\nalgorithm: grpo\nprompts_per_step: {prompts}\nsamples_per_prompt: {samples}\n"
        f"prompt_tokens: {prompt}\nresponse_tokens: {{mean: {response}, cv: 0, max: {response}}}\n"
        "mini_batches: 1\nepochs: 1\nkl: none\n")
    return path


def make_run(tessera, folder, model, gpus, job, fixed, steps, engine="tessera"):
    folder.mkdir(parents=True, exist_ok=True)
    command = [tessera, "plan", "--model", model, "--cluster", str(cluster(folder, gpus)), "--workload",
               str(workload(folder, *job)), "--engine", engine, "-o", str(folder / "plan.json"),
               "--fix", *fixed]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))
    return folder


def own_run(tessera, folder, options, figure):
    """`bench rl`: means over its steps without the first, a digit task with 32 digits."""
    value = lambda name: re.search(rf"--{name} (\S+)", options).group(1)
    fixed = re.search(r"--fix (.*)$", options).group(1).split()
    job = int(value("prompts")), int(value("samples")), 34, int(value("response"))
    data = {f"timing_s/{phase}": seconds for phase, seconds in figure["phases_s"].items()}
    most = figure["memory_gib"].values()
    data["perf/max_memory_allocated_gb"] = max(phase["allocated"] for phase in most)
    data["perf/max_memory_reserved_gb"] = max(phase["reserved"] for phase in most)
    return make_run(tessera, folder, value("model"), 2, job, fixed, [{"step": 2, "data": data}])


def own_runs(tessera, folder):
    runs = [own_run(tessera, folder / figure["run"], figure["options"], figure)
            for figure in results("h200x2-planned-limits")["runs"]]
    base = "--model qwen2.5-1.5b --prompts 64 --samples 8 --response 512 --fix "
    layouts = {"fsdp-exp": "actor.dp_shard=2 actor.pp=1 rollout.tp=1", "tp": "actor.tp=2 actor.pp=1 rollout.tp=1"}
    for figure in results("h200x2-executor-memory")["rl"]:
        if figure["run"] in layouts:
            runs.append(own_run(tessera, folder / figure["run"], base + layouts[figure["run"]], figure))
    return runs


def verl_run(tessera, folder, gpus, prompts):
    """verl's 7B: FSDP2 over `gpus`, `prompts` x 8 samples."""
    fixed = [f"actor.gpus={gpus}", "actor.tp=1", "actor.pp=1", f"actor.dp_shard={gpus}", "actor.zero=3",
             "actor.recompute=full", "actor.tokens=16384", "actor.offload=none", "rollout.tp=1", f"rollout.gpus={gpus}"]
    steps = results(f"h200x{gpus}-verl-7b")["steps"]
    return make_run(tessera, folder / f"verl-{gpus}", "qwen2.5-7b", gpus, (prompts, 8, 500, 1024), fixed, steps, "verl")


def main():
    tessera = sys.argv[1]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else scratch)
        sets = {"whole GRPO steps of Tessera on 2 H200": [*own_runs(tessera, folder), "--warm-up", "0"],
                "verl's 7B on 4 H200": [verl_run(tessera, folder, 4, 64)],
                "verl's 7B on 4 and on 2 H200": [verl_run(tessera, folder, 4, 64), verl_run(tessera, folder, 2, 32)]}
        for title, words in sets.items():
            print(f"== {title}", flush=True)
            subprocess.run([tessera, "learn", *map(str, words)], check=True)


if __name__ == "__main__":
    main()
