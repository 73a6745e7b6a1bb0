#!/usr/bin/env python3
"""Time of transformers' Qwen2 layers on a GPU, by kinds of kernels, and of their GEMMs alone.

    transformers_kernels.py 0.5b,1.5b,3b,7b > kernels.jsonl

Prints a JSON line a measurement, of models of four layers, in sequences of 1,524 tokens that are
packed into one row as verl packs them: seconds of a forward pass of 97,536 tokens and of a forward
and backward pass of 24,384, each repeated for more than a second so that clocks are those of a long
run; milliseconds of one pass by kind (GEMM, attention, other) from torch's profiler; the GEMMs of a
layer alone. Needs a GPU, torch, transformers and flash-attn 2.
"""
import json
import subprocess
import sys
import time

import torch
import transformers
from torch.profiler import ProfilerActivity, profile

SEQUENCE = 1524
LAYERS = 4
# hidden, query heads, KV heads, FFN
SHAPES = {"0.5b": (896, 14, 2, 4864), "1.5b": (1536, 12, 2, 8960), "3b": (2048, 16, 2, 11008),
          "7b": (3584, 28, 4, 18944)}


def say(**row):
    print(json.dumps(row), flush=True)


def clocks():
    """SM clock in MHz, W and degrees."""
    asked = ["nvidia-smi", "-i", "0", "--query-gpu=clocks.sm,power.draw,temperature.gpu",
             "--format=csv,noheader,nounits"]
    return subprocess.check_output(asked, text=True).strip()


def seconds(step, least):
    """Mean of as many steps as take `least` seconds, after one that is not counted."""
    step()
    torch.cuda.synchronize()
    start, done = time.perf_counter(), 0
    while time.perf_counter() - start < least or done < 2:
        step()
        torch.cuda.synchronize()
        done += 1
    return (time.perf_counter() - start) / done


def kind_of(kernel):
    name = kernel.lower()
    if "flash" in name:
        return "attention"
    return "gemm" if "nvjet" in name or "gemm" in name or "cutlass" in name else "other"


def kernels(step):
    """Milliseconds of one step by kind of kernel."""
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        step()
        torch.cuda.synchronize()
    kinds = {}
    for event in profiled.key_averages():
        kind = kind_of(event.key)
        kinds[kind] = kinds.get(kind, 0) + event.self_device_time_total / 1e3
    return {kind: round(ms, 3) for kind, ms in kinds.items()}


def layers(name):
    hidden, heads, kv_heads, ffn = SHAPES[name]
    config = transformers.Qwen2Config(
        hidden_size=hidden, num_hidden_layers=LAYERS, num_attention_heads=heads,
        num_key_value_heads=kv_heads, intermediate_size=ffn, vocab_size=1024, rope_theta=1e6,
        max_position_embeddings=32768, use_cache=False)
    with torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(
            config, dtype=torch.bfloat16, attn_implementation="flash_attention_2").model

    def run(sequences):
        tokens = sequences * SEQUENCE
        ids = torch.randint(1024, (1, tokens), device="cuda")
        positions = torch.arange(SEQUENCE, device="cuda").repeat(sequences)[None]
        return model(input_ids=ids, position_ids=positions, use_cache=False).last_hidden_state

    def forward():
        with torch.no_grad():
            run(64)

    def trained():
        run(16).float().mean().backward()

    for what, step, tokens in (("forward", forward, 64 * SEQUENCE),
                               ("forward+backward", trained, 16 * SEQUENCE)):
        took = seconds(step, 1.2)
        say(what=what, model=name, layers=LAYERS, tokens=tokens, s=took,
            us_layer_token=took / tokens / LAYERS * 1e6, clocks=clocks())
        say(what=what + " kernels", model=name, layers=LAYERS, tokens=tokens, ms=kernels(step))


def products(name):
    hidden, heads, kv_heads, ffn = SHAPES[name]
    rows = 64 * SEQUENCE
    for part, columns, inner in (("query", hidden, hidden),
                                 ("key or value", kv_heads * (hidden // heads), hidden),
                                 ("gate or up", ffn, hidden), ("down", hidden, ffn)):
        x = torch.randn(rows, inner, device="cuda", dtype=torch.bfloat16)
        w = torch.randn(columns, inner, device="cuda", dtype=torch.bfloat16)
        took = seconds(lambda: torch.nn.functional.linear(x, w), 0.5)
        say(what="gemm", model=name, part=part, m=rows, n=columns, k=inner, s=took,
            tflops=2 * rows * columns * inner / took / 1e12, clocks=clocks())


for each in sys.argv[1].split(","):
    layers(each)
    products(each)
    torch.cuda.empty_cache()
