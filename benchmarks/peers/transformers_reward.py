#!/usr/bin/env python3
"""A reward model trained by transformers and torch on one GPU, beside `tessera train-reward`.

    benchmarks/peers/transformers_reward.py MODEL PAIRS START --steps N --dtype bf16|fp32 -o FILE

MODEL: folder of a language model with its tokenizer. PAIRS: JSON lines of prompt, chosen, rejected as plain
texts; each step takes all of them. START receives the reward model that both begin with, unless it is there.
Prints losses and seconds of a step, the first one apart, as JSON.
"""
import argparse
import json
import pathlib
import time

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("pairs")
    parser.add_argument("start")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--lr", type=float, default=1e-5)
    parser.add_argument("--dtype", choices=["bf16", "fp32"], default="bf16")
    parser.add_argument("--rows", type=int, default=16, help="sequences of a micro-batch")
    parser.add_argument("-o", "--output")
    a = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(a.model)
    end = json.loads((pathlib.Path(a.model) / "generation_config.json").read_text())["eos_token_id"]
    end = end[0] if isinstance(end, list) else end
    if not pathlib.Path(a.start).exists():
        torch.manual_seed(1)
        made = AutoModelForSequenceClassification.from_pretrained(a.model, num_labels=1, dtype=torch.float32)
        made.config.pad_token_id = tokenizer.pad_token_id
        made.save_pretrained(a.start)
        tokenizer.save_pretrained(a.start)
        for name in ("generation_config.json", "tokenizer.json", "tokenizer_config.json"):
            (pathlib.Path(a.start) / name).write_bytes((pathlib.Path(a.model) / name).read_bytes())
    model = AutoModelForSequenceClassification.from_pretrained(a.start, dtype=torch.float32).cuda()
    lines = [json.loads(line) for line in open(a.pairs)]
    ids = lambda pair, key: tokenizer(pair["prompt"])["input_ids"] + tokenizer(pair[key])["input_ids"] + [end]
    rows = [ids(pair, key) for pair in lines for key in ("chosen", "rejected")]
    optimizer = torch.optim.AdamW(model.parameters(), lr=a.lr, weight_decay=0, fused=True)
    losses, seconds = [], []
    for _ in range(a.steps):
        torch.cuda.synchronize()
        began, total = time.time(), 0.0
        optimizer.zero_grad()
        for first in range(0, len(rows), a.rows):
            part = rows[first:first + a.rows]
            longest = max(map(len, part))
            tokens = torch.tensor([row + [tokenizer.pad_token_id] * (longest - len(row)) for row in part]).cuda()
            mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in part]).cuda()
            with torch.autocast("cuda", torch.bfloat16, enabled=a.dtype == "bf16"):
                hidden = model.model(input_ids=tokens, attention_mask=mask).last_hidden_state
            last = hidden[torch.arange(len(part)), mask.sum(1) - 1].float()
            scores = (last @ model.score.weight.float().T)[:, 0]
            loss = -torch.nn.functional.logsigmoid(scores[0::2] - scores[1::2]).sum() / len(lines)
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        torch.cuda.synchronize()
        losses.append(total)
        seconds.append(time.time() - began)
    result = {"losses": losses, "step_s": seconds, "tokens": sum(map(len, rows)), "torch": torch.__version__,
              "memory_gib": torch.cuda.max_memory_allocated() / 2**30}
    text = json.dumps(result)
    print(text)
    if a.output:
        pathlib.Path(a.output).write_text(text + "\n")


if __name__ == "__main__":
    main()
