#!/usr/bin/env python3
"""Does every algorithm learn every digit task from random weights, whatever the seed? Each run is one CPU rank's,
ends once the mean reward of five steps has reached the target, and has so many seconds of processor time for it.

usage: benchmarks/learning.py [--tessera build/release/cli/tessera] [--algorithm grpo rloo ...] [--task reverse ...]
                              [--seeds 3] [--digits 3] [--target 0.9] [--limit 300] [-o FILE]

The time is the processor's: what else a machine does at the same time does not count, and an idle one takes as long.
The reward is the part of the digits that are right. Runs that FILE has already are not run again, so that a matrix
can be stopped and taken up; FILE is written after each run. Exit status 1 where a run has not reached the target.
"""
import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

# Advantages that nothing divides by their deviation are a fifth as large: the bonus of the entropy is, too.
SMALL_BONUS = "actor_rollout_ref.actor.entropy_coeff=0.02"
# The preset of the run, and what of it is another algorithm's.
ALGORITHMS = {
    "grpo": ("grpo-digits", []),
    "rloo": ("grpo-digits", ["algorithm.adv_estimator=rloo", SMALL_BONUS]),
    "reinforce++": ("grpo-digits", ["algorithm.adv_estimator=reinforce_plus_plus"]),
    "remax": ("grpo-digits", ["algorithm.adv_estimator=remax", SMALL_BONUS]),
    "dapo": ("grpo-digits", ["algorithm.filter_groups={enable: true, metric: score, max_num_gen_batches: 0}",
                             "actor_rollout_ref.actor.clip_ratio_low=0.2",
                             "actor_rollout_ref.actor.clip_ratio_high=0.28",
                             "actor_rollout_ref.actor.loss_agg_mode=token-mean"]),
    "ppo": ("ppo-digits", []),
}
TASKS = ["reverse", "copy", "sort"]
WINDOW = 5  # steps of a mean
CLUSTER = """version: 1
name: one-cpu
gpu: cpu
memory_gib: 2
peak_tflops_bf16: 0.02
hbm_gb_s: 5
nodes: 1
gpus_per_node: 1
intra_node: {link: shared memory, gb_s_per_gpu_one_way: 1}
"""


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tessera", type=pathlib.Path, default="build/release/cli/tessera")
    parser.add_argument("--algorithm", nargs="+", choices=ALGORITHMS, default=list(ALGORITHMS))
    parser.add_argument("--task", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--digits", type=int, default=3)
    parser.add_argument("--target", type=float, default=0.9)
    parser.add_argument("--limit", type=float, default=300, help="seconds of the processor's that a run may take")
    parser.add_argument("--steps", type=int, default=2000, help="steps that a run may take")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="of run.yaml, for every run")
    parser.add_argument("-o", "--output", type=pathlib.Path)
    return parser.parse_args()


def scores(folder):
    """Mean rewards of the steps so far."""
    file = folder / "metrics.jsonl"
    rows = file.read_text().splitlines(keepends=True) if file.exists() else []
    return [json.loads(row)["data"]["critic/score/mean"] for row in rows if row.endswith("\n")]


def processor_seconds(root):
    """Of a process and all that it has started, so far; what has ended counts once its parent has seen it."""
    children, seconds = {}, {}
    for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        pid = int(entry.parent.name)
        children.setdefault(int(fields[1]), []).append(pid)
        seconds[pid] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    family, total = [root], 0
    while family:
        pid = family.pop()
        total += seconds.get(pid, 0)
        family += children.get(pid, [])
    return total


def mean(values):
    return sum(values) / len(values)


def steps_to(rewards, target):
    """Steps after which the mean of the last ones has reached the target; None: it never has."""
    for step in range(WINDOW, len(rewards) + 1):
        if mean(rewards[step - WINDOW:step]) >= target:
            return step
    return None


def stopped(process):
    """Asks the run to end, and waits."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def learn(options, tessera, folder, algorithm, task, seed):
    preset, changes = ALGORITHMS[algorithm]
    name = f"{algorithm}-{task}-{seed}"
    words = [tessera, "run", f"{preset}.json", "--config", preset]
    for value in [f"data.train_files=[{task}.jsonl]", f"trainer.seed={seed}",
                  f"trainer.total_training_steps={options.steps}", *changes, *options.set]:
        words += ["--set", value]
    with open(folder / f"{name}.log", "w", encoding="utf-8") as log:
        process = subprocess.Popen([*map(str, words), "-o", name], cwd=folder, stdout=log, stderr=log)
        began, took = time.monotonic(), 0
        while process.poll() is None and took < options.limit:
            time.sleep(0.5)
            took = processor_seconds(process.pid)
            if steps_to(scores(folder / name), options.target) is not None:
                break
        wall = time.monotonic() - began
        stopped(process)
    rewards = scores(folder / name)
    if not rewards:
        print((folder / f"{name}.log").read_text(), file=sys.stderr)
        return {"seed": seed, "reached": False, "steps": 0, "processor_s": round(took, 1), "reward": 0.0}
    steps = steps_to(rewards, options.target)
    return {"seed": seed, "reached": steps is not None and took <= options.limit + 1, "steps": steps or len(rewards),
            "processor_s": round(took, 1), "wall_s": round(wall, 1), "reward": round(mean(rewards[:steps][-WINDOW:]), 4),
            "first": round(rewards[0], 4)}


def make_inputs(options, tessera, folder):
    def called(*words):
        ended = subprocess.run([str(tessera), *map(str, words)], cwd=folder, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            sys.exit(f"{' '.join(map(str, words))}: {ended.stdout}{ended.stderr}")
    (folder / "cluster.yaml").write_text(CLUSTER)
    for task in options.task:
        called("make-data", "--task", task, "--digits", options.digits, "--count", 1024, "-o", f"{task}.jsonl")
    called("init-model", "--model", "tiny-qwen2-digits", "--digits", "--seed", 1, "-o", "m")
    for preset in sorted({ALGORITHMS[each][0] for each in options.algorithm}):
        called("plan", "--model", "m", "--cluster", "cluster.yaml", "--workload", preset, "-o", f"{preset}.json")


def report(options, runs):
    missed = [f"{each['algorithm']} {each['task']} {each['seed']}" for each in runs if not each["reached"]]
    return {"what": f"processor seconds and steps until the mean reward of {WINDOW} steps reaches {options.target}, from random "
                    f"weights of 90,000 parameters, {options.digits} digits, one CPU rank",
            "device": platform.processor() or platform.machine(), "cores": os.cpu_count(),
            "command": "benchmarks/learning.py", "limit_s": options.limit, "changed": options.set,
            "recipes": {name: [preset, *changes] for name, (preset, changes) in ALGORITHMS.items()},
            "runs": runs, "reached": len(runs) - len(missed), "of": len(runs), "missed": missed}


def main():
    options = parse()
    tessera = options.tessera.resolve()
    runs = json.loads(options.output.read_text())["runs"] if options.output and options.output.exists() else []
    known = {(each["algorithm"], each["task"], each["seed"]) for each in runs}
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        make_inputs(options, tessera, folder)
        for seed in range(1, options.seeds + 1):
            for algorithm in options.algorithm:
                for task in options.task:
                    if (algorithm, task, seed) in known:
                        continue
                    run = {"algorithm": algorithm, "task": task, **learn(options, tessera, folder, algorithm, task, seed)}
                    runs.append(run)
                    print(f"{algorithm} {task}, seed {seed}: {run['reward']:.3f} after {run['steps']} steps, "
                          f"{run['processor_s']:.0f} s{'' if run['reached'] else ': MISSED'}", flush=True)
                    if options.output:
                        options.output.write_text(json.dumps(report(options, runs), indent=1) + "\n")
    missed = report(options, runs)["missed"]
    print(f"{len(runs) - len(missed)} of {len(runs)} runs have reached {options.target}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
