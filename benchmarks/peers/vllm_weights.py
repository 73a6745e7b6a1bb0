"""What a trainer pays to load new weights into vLLM on the same GPU, as verl does it.

usage: VLLM_ENABLE_V1_MULTIPROCESSING=0 python3 benchmarks/peers/vllm_weights.py CONFIG_FOLDER
       [--layers L]

With dummy weights on one GPU: the engine sleeps (level 2, weights dropped),
then its weights are mapped again ("wake_weights"), tensors named as a checkpoint names them are
copied into a bucket one by one ("pack"), vLLM's load_weights reads each full bucket ("load"), what
vLLM does once after loading ("finish") and its cache is mapped again ("wake_cache"). That is the
order of verl 0.9.1's update_weights (workers/engine_workers.py, workers/rollout/vllm_rollout)
without its gathers, its processes and their messages. Medians over the repetitions, in seconds, for
tensors that arrive in fp32 (FSDP's master weights) and in bf16 (Megatron's). Prints one JSON object.
"""

import argparse
import json
import time

import torch
from vllm import LLM
from vllm.model_executor.model_loader.utils import process_weights_after_loading

BUCKET = 2 << 30  # bytes, verl's update_weights_bucket_megabytes


def checkpoint_shapes(config):
    """Name and shape of every tensor of a Qwen2 or Qwen3-MoE checkpoint."""
    hidden, vocab = config["hidden_size"], config["vocab_size"]
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    head = config.get("head_dim") or hidden // heads
    yield "model.embed_tokens.weight", (vocab, hidden)
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        for part, rows in (("q", heads * head), ("k", kv_heads * head), ("v", kv_heads * head)):
            yield at + f"self_attn.{part}_proj.weight", (rows, hidden)
            if config["model_type"] == "qwen2":
                yield at + f"self_attn.{part}_proj.bias", (rows,)
        yield at + "self_attn.o_proj.weight", (hidden, heads * head)
        if config["model_type"] == "qwen3_moe":
            yield at + "self_attn.q_norm.weight", (head,)
            yield at + "self_attn.k_norm.weight", (head,)
            yield at + "mlp.gate.weight", (config["num_experts"], hidden)
            blocks = [f"mlp.experts.{e}." for e in range(config["num_experts"])]
            width = config["moe_intermediate_size"]
        else:
            blocks, width = ["mlp."], config["intermediate_size"]
        for block in blocks:
            yield at + block + "gate_proj.weight", (width, hidden)
            yield at + block + "up_proj.weight", (width, hidden)
            yield at + block + "down_proj.weight", (hidden, width)
        yield at + "input_layernorm.weight", (hidden,)
        yield at + "post_attention_layernorm.weight", (hidden,)
    yield "model.norm.weight", (hidden,)
    yield "lm_head.weight", (vocab, hidden)


def numel(shape):
    return int(torch.Size(shape).numel())


class Clock:
    def __init__(self):
        self.seconds = {}
        self.last = time.perf_counter()

    def lap(self, name):
        torch.cuda.synchronize()
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0) + now - self.last
        self.last = now


def load(worker, shapes, dtype, clock):
    """Tensors of random numbers through buckets into the worker's model."""
    model = worker.model_runner.model
    for module in model.modules():  # verl's patch_vllm_moe_model_weight_loader
        for parameter in module.parameters(recurse=False):
            if hasattr(module, "weight_loader") and not hasattr(parameter, "weight_loader"):
                parameter.weight_loader = module.weight_loader
    bucket = torch.empty(BUCKET, dtype=torch.uint8, device="cuda")
    source = torch.randn(max(numel(shape) for _, shape in shapes), device="cuda").to(dtype)
    filled, offset = [], 0
    clock.lap("prepare")

    def flush():
        nonlocal filled, offset
        clock.lap("pack")
        model.load_weights(filled)
        clock.lap("load")
        filled, offset = [], 0

    for name, shape in shapes:
        size = numel(shape) * dtype.itemsize
        weight = source[: numel(shape)].view(shape)
        if size > BUCKET:  # handed over as it is
            clock.lap("pack")
            model.load_weights([(name, weight)])
            clock.lap("load")
            continue
        if offset + size > BUCKET:
            flush()
        place = bucket[offset : offset + size].view(dtype).view(shape)
        place.copy_(weight, non_blocking=True)
        filled.append((name, place))
        offset += size
    flush()
    config = worker.vllm_config.model_config
    process_weights_after_loading(model, config, torch.device("cuda"))
    clock.lap("finish")


def measure(folder, repetitions, layers):
    with open(f"{folder}/config.json", encoding="utf-8") as file:
        config = json.load(file)
    overrides = {"num_hidden_layers": layers} if layers else {}
    config.update(overrides)
    engine = LLM(
        model=folder,
        load_format="dummy",
        hf_overrides=overrides,
        skip_tokenizer_init=True,
        enforce_eager=True,
        enable_sleep_mode=True,
        gpu_memory_utilization=0.6,
        max_model_len=2048,
        max_num_seqs=256,
    )
    shapes = list(checkpoint_shapes(config))
    rows = {}
    for dtype in (torch.float32, torch.bfloat16):
        runs = []
        for _ in range(repetitions):
            clock = Clock()
            engine.sleep(level=2)
            torch.cuda.empty_cache()
            clock.lap("sleep")
            engine.wake_up(tags=["weights"])
            clock.lap("wake_weights")
            engine.collective_rpc(load, args=(shapes, dtype, clock))
            clock.last = time.perf_counter()
            torch.cuda.empty_cache()
            clock.lap("release")
            engine.wake_up(tags=["kv_cache"])
            clock.lap("wake_cache")
            runs.append(clock.seconds)
        rows[str(dtype).split(".")[1]] = {
            part: round(sorted(run[part] for run in runs)[len(runs) // 2], 4) for part in runs[0]
        }
    print(
        json.dumps(
            {
                "device": torch.cuda.get_device_name(),
                "model": config["model_type"],
                "layers": config["num_hidden_layers"],
                "tensors": len(shapes),
                "parameters": sum(numel(shape) for _, shape in shapes),
                "seconds": rows,
            }
        ),
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--layers", type=int, help="cut the model's depth")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    measure(options.folder, options.repeat, options.layers)


if __name__ == "__main__":
    main()
