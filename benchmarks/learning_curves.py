#!/usr/bin/env python3
"""Do layouts and placements learn alike? PPO on three-digit reversal with one rank, with four ranks
(TP2xPP2 -> TP2xDP2) and split over two pairs (actor | critic), for several seeds.

usage: benchmarks/learning_curves.py [--tessera build/release/cli/tessera] [--seeds 3] [--steps 60] -o FILE
"""
import argparse, json, os, platform, subprocess, tempfile

PLACEMENTS = {
    "one rank": ["actor.gpus=1", "critic.gpus=1", "placement=colocated"],
    "four ranks": ["actor.tp=2", "actor.pp=2", "rollout.tp=2", "rollout.dp=2", "placement=colocated"],
    "split 2 + 2": ["actor.gpus=2", "critic.gpus=2", "placement=actor | critic", "actor.tp=2"],
}
AT = (20, 40, 60)


def rewards(run, at):
    """Mean reward of the five steps up to and including each step of `at`."""
    values = {}
    with open(os.path.join(run, "metrics.jsonl")) as lines:
        for line in lines:
            row = json.loads(line)
            values[row["step"]] = row["data"]["critic/score/mean"]
    return [sum(values[s] for s in range(step - 4, step + 1)) / 5 for step in at]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tessera", default="build/release/cli/tessera")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("-o", "--output", required=True)
    options = parser.parse_args()
    at = [step for step in AT if step <= options.steps]
    curves = {}
    with tempfile.TemporaryDirectory() as folder:
        def tessera(*words):
            subprocess.run([os.path.abspath(options.tessera), *words], cwd=folder, check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        tessera("make-data", "--task", "reverse", "--digits", "3", "--count", "1024", "-o", "prompts.jsonl")
        for seed in range(1, options.seeds + 1):
            model = f"model-{seed}"
            tessera("init-model", "--model", "tiny-qwen2-digits", "--digits", "--seed", str(seed), "-o", model)
            for name, fixed in PLACEMENTS.items():
                run = f"{name.replace(' ', '-')}-{seed}"
                tessera("plan", "--model", model, "--cluster", "local-cpu", "--workload", "ppo-digits",
                        "--fix", *fixed, "-o", run + ".json")
                tessera("run", run + ".json", "--config", "ppo-digits", "--set", "data.train_files=[prompts.jsonl]",
                        "--set", f"trainer.seed={seed}", "--set", f"trainer.total_training_steps={options.steps}",
                        "-o", run)
                curves.setdefault(name, []).append(rewards(os.path.join(folder, run), at))
                print(f"seed {seed}, {name}: " + ", ".join(f"{value:.3f}" for value in curves[name][-1]), flush=True)
    means = {name: [sum(column) / len(column) for column in zip(*rows)] for name, rows in curves.items()}
    spread = [max(column) - min(column) for column in zip(*means.values())]
    worst = max(max(column) - min(column)
                for rows in zip(*curves.values()) for column in zip(*rows))
    result = {
        "what": "PPO on three-digit reversal: mean reward at steps " + ", ".join(map(str, at)) + " (five-step means)",
        "device": platform.processor() or platform.machine(), "cores": os.cpu_count(),
        "command": "benchmarks/learning_curves.py", "seeds": options.seeds,
        "curves": {name: [[round(value, 4) for value in row] for row in rows] for name, rows in curves.items()},
        "means": {name: [round(value, 4) for value in row] for name, row in means.items()},
        "largest_difference_of_means": round(max(spread), 4),
        "largest_difference_of_one_seed": round(worst, 4),
        "held_to": "0.1 mean reward",
    }
    with open(options.output, "w") as out:
        json.dump(result, out, indent=1)
        out.write("\n")
    print(f"largest difference: {max(spread):.4f} of the means, {worst:.4f} of one seed")


if __name__ == "__main__":
    main()
