#!/usr/bin/env python3
"""Host and device time of transformers' layers under FSDP1, as verl trains them, by tokens.

    CUDA_VISIBLE_DEVICES=0 transformers_time.py MODEL_FOLDER > times.jsonl

Prints a JSON line a measurement: `issue_s` until the host has launched a pass, `wall_s` until the
device has run it, medians of four. The head scores one token of each sequence, so that the layers
are what takes the time. Needs a GPU, torch and transformers; the folder's config.json is enough.
"""
import functools
import json
import os
import sys
import time

import torch
import torch.distributed as dist
import transformers
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
from torch.profiler import ProfilerActivity, profile

LENGTH = 880  # tokens of a sequence


def say(**row):
    print(json.dumps(row), flush=True)


def model_of(config):
    with torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(
            config, dtype=torch.float32, attn_implementation="sdpa")
    model.config.use_cache = False
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    layer = type(model.model.layers[0])
    return FullyShardedDataParallel(
        model, device_id=0, use_orig_params=False,
        auto_wrap_policy=functools.partial(transformer_auto_wrap_policy,
                                           transformer_layer_cls={layer}),
        mixed_precision=MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32,
                                       buffer_dtype=torch.float32))


def once(step):
    torch.cuda.synchronize()
    start = time.perf_counter()
    step()
    issued = time.perf_counter() - start
    torch.cuda.synchronize()
    return time.perf_counter() - start, issued


def measure(what, tokens, step):
    for _ in range(2):
        once(step)
    wall, issue = sorted(once(step) for _ in range(4))[2]
    say(what=what, tokens=tokens, issue_s=issue, wall_s=wall,
        peak_gib=torch.cuda.max_memory_allocated() / 2**30)


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    os.environ.update(RANK="0", WORLD_SIZE="1")
    dist.init_process_group("nccl")
    config = transformers.AutoConfig.from_pretrained(sys.argv[1])
    say(layers=config.num_hidden_layers, hidden=config.hidden_size, torch=torch.__version__,
        transformers=transformers.__version__, device=torch.cuda.get_device_name())

    x = torch.zeros(16, device="cuda")
    once(lambda: [x.add_(1) for _ in range(20000)])
    say(what="add_", issue_us=once(lambda: [x.add_(1) for _ in range(20000)])[1] / 0.02)

    model = model_of(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)

    def batch(tokens):
        length = min(LENGTH, tokens)
        return torch.randint(0, 1000, (max(1, tokens // length), length), device="cuda")

    def forward(ids):
        with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
            model(input_ids=ids, use_cache=False, logits_to_keep=1)

    def train(ids):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model(input_ids=ids, use_cache=False, logits_to_keep=1).logits
        logits.float().logsumexp(-1).mean().backward()

    for tokens in (440, 3520, 7040, 16720, 33440):
        ids = batch(tokens)
        measure("forward", tokens, lambda: forward(ids))
        measure("forward_backward_checkpointed", tokens, lambda: train(ids))
    model.module.gradient_checkpointing_disable()
    for tokens in (440, 3520, 16720):
        ids = batch(tokens)
        measure("forward_backward", tokens, lambda: train(ids))

    def step():
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    measure("optimizer", 0, step)

    ids = batch(440)
    for what, run in (("forward", forward), ("forward_backward", train)):
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
            run(ids)
            torch.cuda.synchronize()
        say(what=f"{what}, kernels", kernels=sum(
            event.device_type == torch.autograd.DeviceType.CUDA for event in seen.events()))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
