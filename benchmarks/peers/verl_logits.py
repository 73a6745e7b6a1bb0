#!/usr/bin/env python3
"""Time of verl's passes over the logits, and of mapping memory, on a GPU.

    [PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True] verl_logits.py > logits.jsonl

Prints a JSON line a measurement, medians of four: the head's product, the entropy that verl
compiles (verl/utils/torch_functional.py, entropy_from_logits), flash-attn's cross entropy, all three
with a backward pass; and seconds until torch's allocator has mapped and unmapped so many GiB. Needs
a GPU, torch and flash-attn 2 (its Triton kernels).
"""
import json
import os
import time

import torch
from flash_attn.ops.triton.cross_entropy import cross_entropy_loss

VOCABULARY = 151936


def say(**row):
    print(json.dumps(row), flush=True)


def once(step):
    torch.cuda.synchronize()
    start = time.perf_counter()
    step()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def measure(what, hidden, tokens, step):
    torch.cuda.reset_peak_memory_stats()
    first, *more = [once(step) for _ in range(4)]
    took = sorted([first, *more])[2]
    say(what=what, hidden=hidden, tokens=tokens, s=took, first=first, us_token=took / tokens * 1e6,
        peak_gib=torch.cuda.max_memory_allocated() / 2**30)


def mapping():
    for gib in (8, 32, 100):
        torch.cuda.empty_cache()
        kept = []
        mapped = once(lambda: kept.append(torch.empty(gib << 30, dtype=torch.uint8, device="cuda")))
        kept.clear()
        say(what="map", allocator=os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""), gib=gib,
            map_s=mapped, unmap_s=once(torch.cuda.empty_cache))


@torch.compile(dynamic=True)
def entropy(logits):
    probabilities = torch.nn.functional.softmax(logits, dim=-1)
    return torch.logsumexp(logits, dim=-1) - torch.sum(probabilities * logits, dim=-1)


def passes(hidden, tokens):
    weight = (torch.randn(VOCABULARY, hidden, device="cuda", dtype=torch.bfloat16) * 0.02)
    weight.requires_grad_()
    states = torch.randn(tokens, hidden, device="cuda", dtype=torch.bfloat16)
    labels = torch.randint(VOCABULARY, (tokens,), device="cuda")
    with torch.no_grad():
        measure("head", hidden, tokens, lambda: torch.nn.functional.linear(states, weight))
        logits = torch.nn.functional.linear(states, weight)
        measure("entropy", hidden, tokens, lambda: entropy(logits))
        measure("cross entropy", hidden, tokens,
                lambda: cross_entropy_loss(logits, labels, inplace_backward=False))
        del logits
    inputs = states.clone().requires_grad_()

    def trained():
        logits = torch.nn.functional.linear(inputs, weight)
        cross_entropy_loss(logits, labels, inplace_backward=True)[0].mean().backward()
        weight.grad = inputs.grad = None

    if tokens <= 72000:
        measure("head and loss, forward and backward", hidden, tokens, trained)


mapping()
for shape in ((896, 16384), (896, 65536), (896, 111488), (1536, 24960), (1536, 98176)):
    passes(*shape)
    torch.cuda.empty_cache()
