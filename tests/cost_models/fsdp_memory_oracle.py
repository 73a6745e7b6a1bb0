#!/usr/bin/env python3
"""Counts what FSDP keeps of a model in mixed precision, from the forward pass to the optimizer's step.

usage: fsdp_memory_oracle.py

Writes tests/fixtures/activations/fsdp_memory.json: bytes of all live tensors of rank 0 by type, on
ranks of gloo on the CPU, in the second step of a small model in fp32 that is wrapped as verl 0.9.1 does
(workers/engine/fsdp/transformer_impl.py: every layer and the root, computation in bf16, reduction in
fp32, AdamW). Meshes of two dimensions are replicas x shards (fsdp_size 1 on two ranks: [2, 1]).
`after_forward` is before the backward pass, `before_step` after it. Activations are four rows.
Written with torch 2.11.0.
"""
import gc
import json
import os
import pathlib
import socket
import warnings

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, MixedPrecisionPolicy
from torch.distributed.fsdp import ShardingStrategy, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

OUT = pathlib.Path(__file__).resolve().parent.parent / "fixtures/activations/fsdp_memory.json"
WIDTH, LAYERS, ROWS = 256, 6, 4
MESHES = [(1,), (2,), (2, 1)]
STRATEGIES = {(1, True): ShardingStrategy.FULL_SHARD, (1, False): ShardingStrategy.SHARD_GRAD_OP,
              (2, True): ShardingStrategy.HYBRID_SHARD, (2, False): ShardingStrategy._HYBRID_SHARD_ZERO2}


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.down = nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, rows):
        return rows + self.down(torch.relu(self.up(rows)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH, bias=False)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.last = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, rows):
        rows = self.first(rows)
        for layer in self.layers:
            rows = layer(rows)
        return self.last(rows)


def wrapped(net, version, mesh, reshard):
    if version == 1:
        return FullyShardedDataParallel(
            net, device_mesh=mesh, sharding_strategy=STRATEGIES[mesh.ndim, reshard], use_orig_params=False,
            auto_wrap_policy=ModuleWrapPolicy({Layer}), device_id=torch.device("cpu"),
            mixed_precision=MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32,
                                           buffer_dtype=torch.float32))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32,
                                  cast_forward_inputs=True)
    for module in [*net.layers, net]:
        fully_shard(module, mesh=mesh, mp_policy=policy, reshard_after_forward=reshard)
    return net


def live_bytes():
    """Bytes of storages that a tensor of Python's refers to, by type; each counts once."""
    gc.collect()
    storages = {}
    for tensor in [each for each in gc.get_objects() if isinstance(each, torch.Tensor)]:
        for part in (tensor, tensor.grad if isinstance(tensor, nn.Parameter) else None):
            if part is None:
                continue
            part = getattr(part, "_local_tensor", part)
            storage = part.untyped_storage()
            if storage.nbytes() > 0:
                storages[storage.data_ptr()] = (storage.nbytes(), str(part.dtype).removeprefix("torch."))
    return {kind: sum(count for count, each in storages.values() if each == kind)
            for kind in ("float32", "bfloat16")}


def measure(rank, mesh_shape, version, reshard, port, answers):
    warnings.filterwarnings("ignore")
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    ranks = torch.Size(mesh_shape).numel()
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    torch.set_num_threads(1)
    mesh = init_device_mesh("cpu", mesh_shape, mesh_dim_names=("ddp", "fsdp")[-len(mesh_shape):])
    net = wrapped(Net(), version, mesh, reshard)
    optimizer = torch.optim.AdamW(net.parameters())
    moments = {}
    for _ in range(2):
        optimizer.zero_grad()
        loss = net(torch.randn(ROWS, WIDTH)).float().pow(2).mean()
        moments["after_forward"] = live_bytes()
        loss.backward()
        del loss
        moments["before_step"] = live_bytes()
        optimizer.step()
        moments["after_step"] = live_bytes()
    if rank == 0:
        answers.put(moments)
    dist.barrier()
    dist.destroy_process_group()


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def main():
    cases = []
    for version in (1, 2):
        for shape in MESHES:
            for reshard in (True, False):
                answers = multiprocessing.get_context("spawn").SimpleQueue()
                multiprocessing.spawn(measure, (shape, version, reshard, free_port(), answers),
                                      nprocs=torch.Size(shape).numel())
                cases.append({"fsdp": version, "mesh": shape, "reshard_after_forward": reshard,
                              **answers.get()})
    elements = sum(each.numel() for each in Net().parameters())
    lines = ",\n".join(json.dumps(case) for case in cases)
    OUT.write_text(f'{{"torch": "{torch.__version__}", "elements": {elements}, "casts": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
