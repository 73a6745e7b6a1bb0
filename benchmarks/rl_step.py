"""Whole GRPO steps with each way of moving the weights: `tessera run` with --reshard full and minimal.

usage: benchmarks/rl_step.py [--model qwen2.5-0.5b] [--ranks 4] [--tessera PATH] [--fix WORD ...] [-o FILE]

Random weights (`init-model`), random digit prompts (`make-data`), one plan for both runs. Prints per way the
median step time, tokens/s per rank, the time and bytes of the switch, the largest memory in use on a GPU
(nvidia-smi, twice a second) and whether both ways drew the same samples. The plan's first step is left out.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile
import threading

WORKLOAD = """version: 1
algorithm: grpo
prompts_per_step: {prompts}
samples_per_prompt: {samples}
prompt_tokens: {prompt}
response_tokens: {{mean: {response}, cv: 0, max: {response}}}
mini_batches: 1
epochs: 1
kl: none
"""


def tessera(options, *words):
    done = subprocess.run([options.tessera, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"tessera {' '.join(map(str, words))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class MemoryWatch:
    """The most memory in use on one GPU while it runs; 0 where there is no nvidia-smi."""

    def __init__(self):
        self.peak, self.stop = 0, threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self):
        while shutil.which("nvidia-smi") and not self.stop.wait(0.5):
            query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
            used = subprocess.run(query, capture_output=True, text=True).stdout.split()
            self.peak = max([self.peak, *(int(mib) for mib in used if mib.isdigit())])

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()


def cluster_of(name, ranks):
    """The preset with one node of `ranks` devices."""
    here = pathlib.Path(__file__).resolve().parent.parent / "configs"
    text = (pathlib.Path(os.environ.get("TESSERA_CONFIGS_DIR", here)) / "clusters" / f"{name}.yaml").read_text()
    return re.sub(r"gpus_per_node: \d+", f"gpus_per_node: {ranks}", text)


def steps_of(run):
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line)["data"] for line in lines][1:]


def measure(options, folder, way):
    run = folder / way
    files = f"data.train_files=[{folder / 'prompts.jsonl'}]"
    with MemoryWatch() as memory:
        tessera(options, "run", folder / "plan.json", "--config", "grpo-digits", "--reshard", way, "--set", files,
                "--set", f"trainer.total_training_steps={options.steps + 1}", "-o", run)
    steps = steps_of(run)

    def median(key):
        return statistics.median(step.get(key, 0.0) for step in steps)

    return {
        "reshard": way,
        "step_s": median("timing_s/step"),
        "gen_s": median("timing_s/gen"),
        "update_s": median("timing_s/update_actor"),
        "reshard_s": median("timing_s/reshard"),
        "reshard_bytes": median("reshard/bytes"),
        "tokens_per_s_per_rank": median("perf/throughput"),
        "peak_mib": memory.peak,
        "samples": hashlib.sha256((run / "samples.jsonl").read_bytes()).hexdigest(),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="qwen2.5-0.5b")
    parser.add_argument("--cluster", default="h200-8")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--fix", nargs="+", default=["actor.tp=2", "actor.pp=1", "rollout.tp=1"])
    parser.add_argument("--prompts", type=int, default=64)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--digits", type=int, default=32, help="of a prompt")
    parser.add_argument("--response", type=int, default=256, help="tokens")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--dtype", default="bf16")
    parser.add_argument("--tessera", default="tessera")
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tessera-rl-"))
    try:
        words = {"prompts": options.prompts, "samples": options.samples, "prompt": options.digits + 2}
        (folder / "workload.yaml").write_text(WORKLOAD.format(**words, response=options.response))
        (folder / "cluster.yaml").write_text(cluster_of(options.cluster, options.ranks))
        tessera(options, "init-model", "--model", options.model, "--digits", "--dtype", options.dtype,
                "-o", folder / "model")
        tessera(options, "make-data", "--task", "reverse", "--digits", options.digits,
                "--count", 4 * options.prompts, "-o", folder / "prompts.jsonl")
        tessera(options, "plan", "--model", folder / "model", "--cluster", folder / "cluster.yaml",
                "--workload", folder / "workload.yaml", "--fix", *options.fix, "-o", folder / "plan.json")
        rows = [measure(options, folder, way) for way in ("full", "minimal")]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for row in rows:
        print(f"{row['reshard']:8} step {row['step_s']:.4f} s (gen {row['gen_s']:.4f}, update {row['update_s']:.4f}, "
              f"reshard {row['reshard_s'] * 1e3:.2f} ms, {row['reshard_bytes'] / 1e9:.4f} GB to the busiest rank)  "
              f"{row['tokens_per_s_per_rank']:.0f} tok/s/rank  peak {row['peak_mib']} MiB")
    same = rows[0]["samples"] == rows[1]["samples"]
    print("both ways drew the same samples" if same else "THE SAMPLES DIFFER")
    result = {"what": "GRPO steps by way of resharding", "model": options.model, "ranks": options.ranks,
              "fixed": options.fix, "prompts": options.prompts, "samples": options.samples,
              "response_tokens": options.response, "same_samples": same, "figures": rows}
    print(json.dumps(result))
    if options.output:
        pathlib.Path(options.output).write_text(json.dumps(result, indent=1) + "\n")
    raise SystemExit(0 if same else 1)


if __name__ == "__main__":
    main()
