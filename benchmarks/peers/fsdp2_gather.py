"""What engines that gather whole tensors pay to hand a model's weights to the rollout.

usage: torchrun --standalone --nproc-per-node N benchmarks/peers/fsdp2_gather.py CONFIG_FOLDER [--layers L]

Rows, each the slowest rank's median over the repetitions, every rank receiving every tensor whole:
  full_tensor_fp32   FSDP2 with fp32 shards, DTensor.full_tensor() of each parameter, then a cast to
                     bf16 (what verl's FSDP path does)
  full_tensor_bf16   the same with bf16 shards
  per_tensor_bf16    one all_gather_into_tensor per tensor, bf16, without DTensor
  flat_bf16          one all_gather_into_tensor of the whole model
Prints one JSON object.
"""

import argparse
import json
import os
import time

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from transformers import AutoConfig, AutoModelForCausalLM


def timed(body, repetitions):
    seconds = []
    for turn in range(repetitions + 2):
        torch.cuda.synchronize()
        dist.barrier()
        begin = time.perf_counter()
        body()
        torch.cuda.synchronize()
        mine = torch.tensor([time.perf_counter() - begin], device="cuda")
        dist.all_reduce(mine, op=dist.ReduceOp.MAX)
        if turn >= 2:
            seconds.append(mine.item())
    return sorted(seconds)[len(seconds) // 2]


def sharded(config, dtype):
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    for layer in model.model.layers:
        fully_shard(layer)
    fully_shard(model)
    model.to_empty(device="cuda")
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter.to_local(), std=0.02)
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("config")
    parser.add_argument("--layers", type=int)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", device_id=torch.device("cuda", int(os.environ["LOCAL_RANK"])))
    config = AutoConfig.from_pretrained(options.config)
    if options.layers:
        config.num_hidden_layers = options.layers
    ranks, rows, size = dist.get_world_size(), {}, 0

    for name, dtype in (("full_tensor_fp32", torch.float32), ("full_tensor_bf16", torch.bfloat16)):
        model = sharded(config, dtype)
        size = 2 * sum(parameter.numel() for parameter in model.parameters())

        def gather():
            for parameter in model.parameters():
                parameter.full_tensor().to(torch.bfloat16)

        with torch.no_grad():
            rows[name] = timed(gather, options.repeat)
        del model
        torch.cuda.empty_cache()

    with torch.device("meta"):
        shapes = [p.numel() for p in AutoModelForCausalLM.from_config(config).parameters()]
    parts = [torch.randn(-(-n // ranks), dtype=torch.bfloat16, device="cuda") for n in shapes]

    def per_tensor():
        for part in parts:
            dist.all_gather_into_tensor(part.new_empty(part.numel() * ranks), part)

    rows["per_tensor_bf16"] = timed(per_tensor, options.repeat)
    del parts
    flat = torch.empty(size // 2 // ranks * ranks, dtype=torch.bfloat16, device="cuda")
    mine = flat.view(ranks, -1)[dist.get_rank()]
    rows["flat_bf16"] = timed(lambda: dist.all_gather_into_tensor(flat, mine), options.repeat)
    if dist.get_rank() == 0:
        received = size * (ranks - 1) / ranks
        print(
            json.dumps(
                {
                    "what": "gathering whole tensors on every rank",
                    "ranks": ranks,
                    "model": os.path.basename(os.path.normpath(options.config)),
                    "torch": torch.__version__,
                    "device": torch.cuda.get_device_name(),
                    "model_bytes": size,
                    "received_bytes": received,
                    "figures": {
                        name: {"seconds": seconds, "gb_per_s": received / seconds * 1e-9}
                        for name, seconds in rows.items()
                    },
                }
            )
        )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
