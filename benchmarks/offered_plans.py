#!/usr/bin/env python3
"""Random planning requests held to what the tool itself offers beside its answer.

usage: offered_plans.py TESSERA [--requests N] [--fixes N] [--seed N] [--simulate]

Every request draws a model, a cluster, a workload's lengths and an engine. Its plan must be no
slower than any plan that its certificate lists, nor than the answer to any of the random --fix
settings that are tried, but for the certificate's gap. With --simulate the mean of the simulator's
steps over 16 draws of lengths must be within 5 % of the plan's, but for twice its standard error:
where few sequences run on a replica the longest decides, and one draw scatters by 10 to 20 %. Prints every violation and a summary as JSON; exits with 1 where there
is a violation.
"""
import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

MODELS = ["llama3.1-8b", "llama3.1-70b", "qwen2.5-0.5b", "qwen2.5-7b", "qwen2.5-32b", "qwen3-8b",
          "qwen3-30b-a3b", "mixtral-8x7b", "deepseek-v2-lite", "gpt-oss-20b", "mistral-7b"]
CLUSTERS = ["h100-8", "h100-64", "h200-8", "h200-64", "h800-8", "h800-16", "h800-64", "a100-8",
            "a100-64", "b200-8", "h20-8", "h20-64"]
ENGINES = ["tessera", "verl", "verl-megatron", "any"]


def workload(draw):
    algorithm = draw.choice(["ppo", "grpo"])
    mean = draw.choice([256, 512, 1024, 2048])
    spread = draw.choice([0, 0.5, 1])
    prompts = draw.choice([64, 128, 256, 512])
    samples = 1 if algorithm == "ppo" else draw.choice([4, 8])
    longest = mean if spread == 0 else mean * draw.choice([2, 4])
    return "\n".join([
        "version: 1", f"algorithm: {algorithm}", f"prompts_per_step: {prompts}",
        f"samples_per_prompt: {samples}", f"prompt_tokens: {draw.choice([128, 512, 1024])}",
        f"response_tokens: {{mean: {mean}, cv: {spread}, max: {longest}}}",
        f"mini_batches: {draw.choice([1, 2, 4])}", "epochs: 1",
        f"kl: {draw.choice(['none', 'loss', 'reward'])}", ""])


def fix(draw):
    role = draw.choice(["actor", "reference", "actor"])
    return draw.choice([
        [f"{role}.tokens={draw.randint(2000, 90000)}"],
        [f"actor.tp={draw.choice([1, 2, 4, 8])}"],
        [f"rollout.tp={draw.choice([1, 2, 4, 8])}"],
        [f"actor.pp={draw.choice([1, 2, 4])}"],
        [f"rollout.max_sequences={draw.randint(4, 300)}"],
        [f"actor.recompute={draw.choice(['none', 'selective', 'full'])}"],
        [f"actor.zero={draw.choice([0, 1, 2, 3])}"],
        [f"actor.tp={draw.choice([1, 2, 4])}", f"actor.tokens={draw.randint(2000, 60000)}"],
        ["placement=colocated"],
    ])


def simulated(tessera, path, draws=16):
    """Steps of the plan, one for each draw of lengths; none where it cannot be simulated."""
    steps = []
    for seed in range(1, draws + 1):
        done = subprocess.run([tessera, "simulate", str(path), "--json", "--seed", str(seed)],
                              capture_output=True, text=True)
        if done.returncode != 0:
            return []
        steps.append(json.loads(done.stdout)["step_s"])
    return steps


def planned(tessera, arguments, path):
    done = subprocess.run([tessera, "plan", *arguments, "-o", str(path)], capture_output=True,
                          text=True)
    if done.returncode != 0:
        return None
    return json.loads(path.read_text())


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n")[2])
    parser.add_argument("tessera")
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--fixes", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--simulate", action="store_true")
    asked = parser.parse_args()
    draw = random.Random(asked.seed)
    counts = {"requests": 0, "plans": 0, "listed": 0, "fixed": 0, "simulated": 0}
    bad = []
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for number in range(asked.requests):
            load = folder / "workload.yaml"
            load.write_text(workload(draw))
            words = ["--model", draw.choice(MODELS), "--cluster", draw.choice(CLUSTERS),
                     "--workload", str(load), "--engine", draw.choice(ENGINES)]
            counts["requests"] += 1
            plan = planned(asked.tessera, words, folder / "plan.json")
            if plan is None:
                continue
            counts["plans"] += 1
            step, gap = plan["prediction"]["step_s"], plan["certificate"]["gap"]
            told = " ".join(words[:4] + words[6:]) + " " + load.read_text().replace("\n", " ")
            for other in plan["certificate"]["runner_up"]:
                counts["listed"] += 1
                if other["step_s"] < step * (1 - 1e-9):
                    bad.append([told, "listed", other["step_s"] / step - 1, other["description"]])
            for _ in range(asked.fixes):
                setting = fix(draw)
                fixes = [word for each in setting for word in ("--fix", each)]
                answer = planned(asked.tessera, words + fixes, folder / "fixed.json")
                if answer is None:
                    continue
                counts["fixed"] += 1
                other = answer["prediction"]["step_s"]
                if other < step * (1 - gap - 1e-9):
                    bad.append([told, "fixed", other / step - 1, " ".join(setting)])
            if asked.simulate:
                steps = simulated(asked.tessera, folder / "plan.json")
                if steps:
                    counts["simulated"] += 1
                    error = statistics.mean(steps) / step - 1
                    doubt = statistics.stdev(steps) / step / len(steps) ** 0.5
                    worst = max(worst, abs(error))
                    if abs(error) > 0.05 + 2 * doubt:
                        bad.append([told, "simulated", error, f"standard error {doubt:.3f}"])
    for line in bad:
        print(json.dumps(line))
    print(json.dumps({**counts, "violations": len(bad), "worst_simulated": worst}))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
