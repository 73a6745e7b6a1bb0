#!/usr/bin/env python3
"""Counts what FSDP allocates beside its shards in the passes of a Qwen2 of transformers.

usage: fsdp_root_oracle.py

Writes tests/fixtures/activations/fsdp_root.json: for each moment of a pass the most bytes that torch's
allocator of the CPU had given out, less what it had before the pass (parameters in fp32 and AdamW's
moments, cut over the ranks; no gradients). Models are wrapped as verl 0.9.1 does
(workers/engine/fsdp/transformer_impl.py: layers and the root with FSDP1; with FSDP2 embedding and head,
too, where they are not tied, utils/fsdp_utils.py), compute in bf16 and reduce in fp32. One process stands
for all ranks: torch's fake process group moves nothing and allocates nothing, where gloo copies what it
reduces. Two tokens, small layers and a large vocabulary, so that most bytes are those of the two ends.
FSDP2 with untied ends is left out: its copy of gradients to be reduced (_chunk_cat) allocates more on the
CPU than its kernel on GPUs.

`loss` begins with the head, `layers` with the last layer's backward pass, `end` after that of the first;
`score` is what follows the embedding in a pass without gradients, `left` what is there once that pass and
its logits are gone, `cut` the same after the next pass with gradients and its step. Then two micro-batches
of one step, the first of which reduces nothing (no_sync, set_requires_gradient_sync): `first_end` of it,
`kept` between the two, `last_layers` and `last_end` of the second.
Written with torch 2.11.0 and transformers 5.17.0 on a CPU whose products take bf16: others copy the head
to fp32 for `loss` and `layers`.
"""
import contextlib
import gc
import json
import pathlib
import tempfile
import warnings

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, MixedPrecisionPolicy
from torch.distributed.fsdp import ShardingStrategy, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.profiler import ProfilerActivity, profile, record_function
from torch.testing._internal.distributed.fake_pg import FakeStore
from transformers import Qwen2Config, Qwen2ForCausalLM, Qwen2ForTokenClassification
from transformers.models.qwen2.modeling_qwen2 import Qwen2DecoderLayer

OUT = pathlib.Path(__file__).resolve().parent.parent / "fixtures/activations/fsdp_root.json"
SIZES = {"vocab_size": 16384, "hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 4}
TOKENS = 2
CASES = [(1, "untied"), (1, "tied"), (1, "value"), (2, "tied")]
RANKS = (2, 8)


def model_of(ends):
    config = Qwen2Config(**SIZES, tie_word_embeddings=ends == "tied", use_cache=False, num_labels=1)
    return (Qwen2ForTokenClassification if ends == "value" else Qwen2ForCausalLM)(config).float()


def wrapped(net, version, ranks):
    mesh = init_device_mesh("cpu", (ranks,), mesh_dim_names=("fsdp",))
    if version == 1:
        return FullyShardedDataParallel(
            net, device_mesh=mesh, sharding_strategy=ShardingStrategy.FULL_SHARD, use_orig_params=False,
            auto_wrap_policy=ModuleWrapPolicy({Qwen2DecoderLayer}), device_id=torch.device("cpu"),
            mixed_precision=MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32,
                                           buffer_dtype=torch.float32))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32,
                                  cast_forward_inputs=True)
    for module in [*net.model.layers, net]:  # the root holds the tied ends
        fully_shard(module, mesh=mesh, mp_policy=policy, reshard_after_forward=True)
    return net


PASS = [""]  # a name before the moments of the hooks


def mark(moment):
    with record_function("moment:" + PASS[0] + moment):
        pass


def mark_moments(net):
    """Where a moment begins: at the head, and where gradients reach the last layer and the embedding."""
    def at_gradient(tensor, moment):
        if tensor.requires_grad:
            tensor.register_hook(lambda _: mark(moment))
        else:
            mark("score")

    head = net.lm_head if hasattr(net, "lm_head") else net.score
    head.register_forward_pre_hook(lambda *_: mark("loss") if torch.is_grad_enabled() else None)
    net.model.norm.register_forward_pre_hook(
        lambda _, rows: at_gradient(rows[0], "layers") if torch.is_grad_enabled() else None)
    net.model.embed_tokens.register_forward_hook(lambda _, ids, rows: at_gradient(rows, "end"))


def peaks(recording):
    """By moment the most bytes that were given out, in the last pass that had it."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        recording.export_chrome_trace(file.name)
        events = json.load(open(file.name, encoding="utf-8"))["traceEvents"]
    most, moment, given = {}, "made", 0
    for event in sorted((each for each in events if "ts" in each), key=lambda each: float(each["ts"])):
        name = event["name"]
        if name == "[memory]":
            given = event["args"]["Total Allocated"]
        elif name.startswith("moment:"):
            moment = name.removeprefix("moment:")
            most[moment] = given
        most[moment] = max(most.get(moment, 0), given)
    return most


@contextlib.contextmanager
def synchronised(net, version, reduces):
    if version == 1 and not reduces:
        with net.no_sync():
            yield
    elif version == 1:
        yield
    else:
        net.set_requires_gradient_sync(reduces)
        yield
        net.set_requires_gradient_sync(True)


def learn(net, name, optimizer=None):
    """One pass with gradients, and the step."""
    PASS[0] = name
    mark("forward")
    net(input_ids=torch.zeros(1, TOKENS, dtype=torch.long)).logits.float().pow(2).mean().backward()
    mark("step")
    if optimizer is not None:
        optimizer.step()
        optimizer.zero_grad()
    gc.collect()
    PASS[0] = ""


def measure(version, ends, ranks):
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recording:
        net = model_of(ends)
        elements = sum(each.numel() for each in net.parameters())
        layer = sum(each.numel() for each in net.model.layers[0].parameters())
        mark_moments(net)
        net = wrapped(net, version, ranks)
        optimizer = torch.optim.AdamW(net.parameters())
        ids = torch.zeros(1, TOKENS, dtype=torch.long)
        for _ in range(2):
            gc.collect()
            mark("before")
            mark("forward")
            net(input_ids=ids).logits.float().pow(2).mean().backward()
            mark("step")
            optimizer.step()
            optimizer.zero_grad()
        with torch.no_grad():
            net(input_ids=ids)
        gc.collect()
        mark("left")
        learn(net, "again_", optimizer)
        mark("cut")
        with synchronised(net, version, False):
            learn(net, "first_")
        mark("kept")
        learn(net, "last_", optimizer)
    most = peaks(recording)
    moments = {each: most[each] - most["before"]
               for each in ("loss", "layers", "end", "score", "left", "cut", "first_end", "kept",
                            "last_layers", "last_end")}
    return {"fsdp": version, "ends": ends, "ranks": ranks, "elements": elements, "layer": layer, **moments}


def main():
    warnings.filterwarnings("ignore")
    cases = []
    for ranks in RANKS:
        dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
        cases += [measure(version, ends, ranks) for version, ends in CASES]
        dist.destroy_process_group()
    lines = ",\n".join(json.dumps(case) for case in cases)
    head = json.dumps({"torch": torch.__version__, "tokens": TOKENS, **SIZES})
    OUT.write_text(f'{head[:-1]}, "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
