#!/usr/bin/env python3
"""Does PPO with a reward model that was trained here learn arithmetic? Word problems like GSM8K's are generated, a tiny
model learns to write answers of which half are right, `tessera train-reward` trains a reward model on right
answers beside wrong ones, and `tessera run` trains the model by PPO with a critic on the reward model's scores alone.
How many answers have the right number is counted from samples.jsonl, which no part of the training sees.

usage: benchmarks/word_problems.py [--tessera build/release/cli/tessera] [--seeds 1 2 3] [--steps 60] [-o FILE]
                                   [--ranks 2] [--cluster FILE_OR_PRESET]

Seeds that FILE has already are not run again. Exit status 1 where fewer than nine of ten answers are right in the end,
or not a fifth more than in the beginning. The language model is made by torch and transformers (the Python that runs
this), all else by Tessera, on CPU ranks or on the GPUs of a cluster that is named.
"""
import argparse
import json
import os
import pathlib
import platform
import random
import re
import subprocess
import sys
import tempfile
import time

NAMES = ["Ann", "Bob", "Eve", "Tom", "Mia", "Max"]
THINGS = ["apples", "pens", "books", "coins", "eggs"]
# Sums of digits, and what two people have together.
TEXTS = ["{a} has {x} {t} . {b} gives {a} {y} more . How many {t} has {a} now ?",
         "{a} has {x} {t} and {b} has {y} {t} . How many {t} have both ?",
         "{a} buys {x} {t} today and {y} tomorrow . How many {t} are it ?"]
WORDS = sorted({word for text in TEXTS for word in text.split() if not word.startswith("{")} |
               set(NAMES) | set(THINGS))
RIGHT = 0.5  # of the answers that the language model learns from
SPECIAL = ["<pad>", "<end>"]
CLUSTER = """version: 1
name: few-cpus
gpu: cpu
memory_gib: 2
peak_tflops_bf16: 0.02
hbm_gb_s: 5
nodes: 1
gpus_per_node: RANKS
intra_node: {link: shared memory, gb_s_per_gpu_one_way: 1}
"""
WORKLOAD = """version: 1
algorithm: ppo
prompts_per_step: 32
samples_per_prompt: 8
prompt_tokens: 40
response_tokens: {mean: 3, cv: 0, max: 4}
mini_batches: 2
epochs: 1
kl: none
models: {reward: reward/hf}
"""
RUN = """version: 1
data: {train_files: prompts.jsonl}
algorithm: {adv_estimator: gae, gamma: 1.0, lam: 1.0}
actor_rollout_ref:
  actor: {optim: {lr: 1.0e-3, weight_decay: 0}, clip_ratio: 0.2, entropy_coeff: 0.0}
critic: {optim: {lr: 1.0e-3, weight_decay: 0}}
trainer: {total_training_steps: STEPS, seed: SEED}
"""


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tessera", type=pathlib.Path, default="build/release/cli/tessera")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=60, help="of PPO")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--cluster", help="of GPUs; default: so many CPU ranks")
    parser.add_argument("--pretrain", type=int, default=700, help="steps of the language model")
    parser.add_argument("-o", "--output", type=pathlib.Path)
    return parser.parse_args()


def problem(draw):
    x, y = draw.randint(0, 9), draw.randint(0, 9)
    a, b = draw.sample(NAMES, 2)
    return draw.choice(TEXTS).format(a=a, b=b, x=x, y=y, t=draw.choice(THINGS)), x + y


def wrong(draw, truth):
    return draw.choice([number for number in range(19) if number != truth])


def tokenizer():
    """Whole words and numbers are tokens: those of a BPE without merges that are added to its bytes."""
    byte_letters = [chr(code) for code in range(33, 127) if not chr(code).isdigit()] + ["\u0120"]
    vocab = {token: number for number, token in enumerate(SPECIAL + byte_letters)}
    more = WORDS + [str(number) for number in range(19)] + ["####"]
    words = [word for word in more if word not in vocab]

    def added(number, text, special):
        return {"id": number, "content": text, "single_word": not special, "lstrip": not special, "rstrip": False,
                "normalized": False, "special": special}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [added(n, text, True) for n, text in enumerate(SPECIAL)] +
                            [added(len(vocab) + n, word, False) for n, word in enumerate(words)],
            "normalizer": None, "pre_tokenizer": level, "post_processor": None, "decoder": level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                      "vocab": vocab, "merges": []}}, len(vocab) + len(words)


def pretrained(folder, draw, steps, seed):
    """Writes a language model that answers every problem with a number, the right one now and then."""
    import torch  # pylint: disable=import-outside-toplevel
    import transformers  # pylint: disable=import-outside-toplevel
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    text, size = tokenizer()
    folder.mkdir()
    (folder / "tokenizer.json").write_text(json.dumps(text))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<end>", "pad_token": "<pad>"}))
    tokens = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.Qwen2ForCausalLM(transformers.Qwen2Config(
        hidden_size=64, intermediate_size=176, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=size, max_position_embeddings=128, tie_word_embeddings=True, initializer_range=0.1,
        eos_token_id=1, pad_token_id=0, bos_token_id=None, dtype="float32"))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * (1 - step / steps)
        rows = []
        for _ in range(64):
            asked, truth = problem(draw)
            told = truth if draw.random() < RIGHT else wrong(draw, truth)
            rows.append((tokens.encode(asked), tokens.encode(f"#### {told}") + [1]))
        longest = max(len(asked) + len(told) for asked, told in rows)
        ids = torch.tensor([[*a, *t] + [0] * (longest - len(a) - len(t)) for a, t in rows])
        labels = torch.tensor([[-100] * len(a) + t + [-100] * (longest - len(a) - len(t)) for a, t in rows])
        loss = model(input_ids=ids, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.save_pretrained(folder)


def right(text, truth):
    found = re.findall(r"####\s*(\d+)", text)
    return bool(found) and int(found[-1]) == truth


def write_lines(file, rows):
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def pair(draw):
    asked, truth = problem(draw)
    return {"prompt": asked, "chosen": f"#### {truth}", "rejected": f"#### {wrong(draw, truth)}"}


def prompt(draw):
    asked, truth = problem(draw)
    return {"data_source": "tessera/word-problems", "prompt": asked,
            "reward_model": {"style": "rule", "ground_truth": str(truth)}}


def lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def accuracy(folder, steps):
    """Of the answers of each step."""
    counts = [[0, 0] for _ in range(steps)]
    for row in lines(folder / "samples.jsonl"):
        count = counts[row["step"] - 1]
        count[0] += right(row["output"], int(row["gts"]))
        count[1] += 1
    return [good / all_of_them for good, all_of_them in counts if all_of_them]


def learn(options, folder, seed):
    draw = random.Random(seed)
    tessera = options.tessera.resolve()

    def called(*words):
        ended = subprocess.run([str(tessera), *map(str, words)], cwd=folder, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            sys.exit(f"{' '.join(map(str, words))}: {ended.stdout}{ended.stderr}")
    began = os.times()
    wall = time.monotonic()
    pretrained(folder / "model", draw, options.pretrain, seed)
    write_lines(folder / "pairs.jsonl", [pair(draw) for _ in range(4096)])
    write_lines(folder / "held-out.jsonl", [pair(draw) for _ in range(256)])
    write_lines(folder / "prompts.jsonl", [prompt(draw) for _ in range(1024)])
    called("train-reward", "pairs.jsonl", "--model", "model", "--validation", "held-out.jsonl", "--epochs", 3, "--batch", 64,
           "--lr", 2e-3, "--lr-decay", "cosine", "--weight-decay", 0, "--center-coefficient", 0.01, "--seed", seed,
           "--ranks", options.ranks, "--device", "cuda" if options.cluster else "cpu", "-o", "reward")
    (folder / "cluster.yaml").write_text(CLUSTER.replace("RANKS", str(options.ranks)))
    (folder / "ppo.yaml").write_text(WORKLOAD)
    (folder / "run.yaml").write_text(RUN.replace("STEPS", str(options.steps)).replace("SEED", str(seed)))
    called("plan", "--model", "model", "--cluster", options.cluster or "cluster.yaml", "--workload", "ppo.yaml", "-o", "plan.json")
    called("run", "plan.json", "--config", "run.yaml", "-o", "run")
    ended = os.times()
    judged = lines(folder / "reward" / "metrics.jsonl")[-1]["data"]
    by_step = accuracy(folder / "run", options.steps)
    scores = [row["data"]["critic/score/mean"] for row in lines(folder / "run" / "metrics.jsonl")]
    return {"seed": seed, "reward_model_accuracy": round(judged["val/accuracy"], 4),
            "first": round(sum(by_step[:5]) / 5, 4), "last": round(sum(by_step[-5:]) / 5, 4),
            "score_first": round(sum(scores[:5]) / 5, 3), "score_last": round(sum(scores[-5:]) / 5, 3),
            "processor_s": round(sum(ended[:4]) - sum(began[:4]), 1), "wall_s": round(time.monotonic() - wall, 1)}


def main():
    options = parse()
    runs = json.loads(options.output.read_text())["runs"] if options.output and options.output.exists() else []
    for seed in options.seeds:
        if any(run["seed"] == seed for run in runs):
            continue
        with tempfile.TemporaryDirectory() as scratch:
            runs.append(learn(options, pathlib.Path(scratch), seed))
        run = runs[-1]
        print(f"seed {seed}: reward model right on {run['reward_model_accuracy']:.3f} of held-out pairs; right answers "
              f"{run['first']:.3f} -> {run['last']:.3f} in {options.steps} steps, {run['processor_s']:.0f} s", flush=True)
        report = {"what": "part of the answers with the right number in the first and the last five steps of PPO with a "
                          "critic and a reward model trained on pairs of right and wrong answers",
                  "device": platform.processor() or platform.machine(), "cores": os.cpu_count(),
                  "command": "benchmarks/word_problems.py" + (" --cluster C" if options.cluster else ""), "steps": options.steps, "ranks": options.ranks, "runs": runs}
        if options.output:
            options.output.write_text(json.dumps(report, indent=1) + "\n")
    sys.exit(0 if all(run["last"] >= 0.9 and run["last"] > run["first"] + 0.2 for run in runs) else 1)


if __name__ == "__main__":
    main()
