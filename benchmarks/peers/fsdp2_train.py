"""Training steps of a Hugging Face decoder under PyTorch FSDP2: what `tessera bench train` is compared with.

usage: torchrun --standalone --nproc-per-node N benchmarks/peers/fsdp2_train.py CONFIG_FOLDER
           [--layers L] [--micro-batches 1 2 4] [--modes eager compile] [--attention cudnn] [-o FILE]

fully_shard per layer and for the whole, bf16 parameters with fp32 shards and fp32 gradient reduction,
scaled_dot_product_attention (cuDNN's kernel first), cross entropy over the whole vocabulary, fused AdamW,
clipping to 1. Random weights from config.json: nothing is downloaded. A setting that runs out of memory
is printed as such and the next one is tried. One line of JSON at the end: tokens/s per GPU and MFU, as
6 x (parameters without the input embedding) + causal attention per token, and as verl counts (with the
input embedding).

On 4 x H200, about 4 minutes:
  torchrun --standalone --nproc-per-node 4 benchmarks/peers/fsdp2_train.py configs/models/qwen2-7b
"""

import argparse
import contextlib
import gc
import json
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import AutoConfig, AutoModelForCausalLM

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # the CPU is for trying this script out
BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}


def say(text):
    if dist.get_rank() == 0:
        print(text, flush=True)


def flops_per_token(config, length):
    """Forward and backward, without and with the input embedding."""
    heads, hidden, ffn = config.num_attention_heads, config.hidden_size, config.intermediate_size
    width = getattr(config, "head_dim", None) or hidden // heads
    layer = hidden * width * (2 * heads + 2 * config.num_key_value_heads) + 3 * hidden * ffn
    matrices = layer * config.num_hidden_layers + config.vocab_size * hidden
    attention = config.num_hidden_layers * 2 * heads * width * length
    return 6 * matrices + 3 * attention, 6 * (matrices + config.vocab_size * hidden) + 3 * attention


def synchronize():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def build(config, reduce_dtype):
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="sdpa")
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=reduce_dtype)
    for layer in model.model.layers:
        fully_shard(layer, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    model.to_empty(device=DEVICE)
    with torch.no_grad():
        torch.manual_seed(dist.get_rank())
        for name, parameter in model.named_parameters():
            local = parameter.to_local()
            if parameter.dim() > 1:
                local.normal_(0, 0.02)
            else:
                local.fill_(0.0 if name.endswith("bias") else 1.0)
        # Buffers came without values from the meta device.
        rotary = model.model.rotary_emb
        fresh = type(rotary)(config=config, device=DEVICE)
        rotary.inv_freq = fresh.inv_freq
        if hasattr(rotary, "original_inv_freq"):
            rotary.original_inv_freq = fresh.inv_freq
    return model


def cross_entropy(logits, tokens):
    """Logits in bf16, loss in fp32."""
    return F.cross_entropy(logits[:, :-1].reshape(-1, logits.size(-1)).float(), tokens[:, 1:].reshape(-1))


def measure(model, config, options, batch, loss_of):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, weight_decay=0.01, fused=True)
    generator = torch.Generator(device=DEVICE).manual_seed(dist.get_rank())
    size = (batch, options.sequence)
    if DEVICE == "cuda":
        torch.cuda.reset_peak_memory_stats()

    def step():
        tokens = torch.randint(config.vocab_size, size, device=DEVICE, generator=generator)
        loss = loss_of(model(input_ids=tokens, use_cache=False).logits, tokens)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    for _ in range(options.warm_up):
        loss = step()
    synchronize()
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(options.steps):
        loss = step()
    synchronize()
    seconds = torch.tensor([(time.perf_counter() - begin) / options.steps], device=DEVICE)
    dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
    rate = batch * options.sequence / seconds.item()
    plain, with_embedding = flops_per_token(config, options.sequence)
    return {
        "step_s": seconds.item(),
        "tokens_per_s_per_gpu": rate,
        "mfu": plain * rate / (options.peak_tflops * 1e12),
        "mfu_verl": with_embedding * rate / (options.peak_tflops * 1e12),
        "peak_gib": torch.cuda.max_memory_allocated() / 2**30 if DEVICE == "cuda" else 0.0,
        "loss": loss.item(),
    }


def attempt(config, options, mode, batch):
    """One setting; every rank agrees whether it ran."""
    row, failure = None, ""
    try:
        reduce_dtype = torch.float32 if options.reduce_dtype == "fp32" else torch.bfloat16
        model = build(config, reduce_dtype)
        loss_of = cross_entropy
        if mode == "compile":
            loss_of = torch.compile(cross_entropy)
            for layer in model.model.layers:
                layer.compile()
        kernels = (
            sdpa_kernel([BACKENDS[options.attention], SDPBackend.FLASH_ATTENTION], set_priority=True)
            if options.attention in BACKENDS
            else contextlib.nullcontext()
        )
        with kernels:
            row = measure(model, config, options, batch, loss_of)
    except torch.OutOfMemoryError:
        failure = "out of memory"
    except RuntimeError as error:
        failure = ("out of memory: " if "out of memory" in str(error) else "") + str(error)[:300]
    model = None
    gc.collect()
    torch._dynamo.reset()
    if DEVICE == "cuda":
        torch.cuda.empty_cache()
    failed = torch.tensor([0 if row else 1], device=DEVICE)
    dist.all_reduce(failed)
    if failed.item():
        return {"failed": failure or "another rank failed"}
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("config")
    parser.add_argument("--layers", type=int)
    parser.add_argument("--sequence", type=int, default=4096)
    parser.add_argument("--micro-batches", type=int, nargs="+", default=[1, 2, 4], help="sequences per step and GPU")
    parser.add_argument("--modes", nargs="+", default=["eager", "compile"], choices=["eager", "compile"])
    parser.add_argument("--attention", default="cudnn", choices=["cudnn", "flash", "any"])
    parser.add_argument("--reduce-dtype", default="fp32", choices=["fp32", "bf16"])
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument("--peak-tflops", type=float, default=989.0)
    parser.add_argument("--seconds", type=float, default=270.0, help="no further setting is begun after this long")
    parser.add_argument("-o", "--output")
    options = parser.parse_args()

    begin = time.perf_counter()
    if DEVICE == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("nccl", device_id=torch.device("cuda", int(os.environ["LOCAL_RANK"])))
    else:
        dist.init_process_group("gloo")
    config = AutoConfig.from_pretrained(options.config)
    if options.layers:
        config.num_hidden_layers = options.layers
        if getattr(config, "layer_types", None):
            config.layer_types = config.layer_types[: options.layers]
    figures = []
    for mode in options.modes:
        for batch in options.micro_batches:
            # Ranks agree on when to stop: rank 0's clock counts.
            spent = torch.tensor([time.perf_counter() - begin], device=DEVICE)
            dist.broadcast(spent, 0)
            if spent.item() > options.seconds:
                row = {"failed": "left out: no time"}
            else:
                row = attempt(config, options, mode, batch)
            figures.append({"mode": mode, "micro_batch": batch, **row})
            if "failed" in row:
                say(f"fsdp2 {mode:8} B={batch}: {row['failed']}")
            else:
                say(
                    f"fsdp2 {mode:8} B={batch}: {row['step_s']:.4f} s  {row['tokens_per_s_per_gpu']:.0f} tok/s/GPU  "
                    f"MFU {row['mfu'] * 100:.1f} % (verl's {row['mfu_verl'] * 100:.1f} %)  peak {row['peak_gib']:.1f} GiB"
                )
    if dist.get_rank() == 0:
        result = {
            "what": "PyTorch FSDP2 training",
            "ranks": dist.get_world_size(),
            "model": os.path.basename(os.path.normpath(options.config)),
            "layers": config.num_hidden_layers,
            "sequence": options.sequence,
            "attention": options.attention,
            "reduce_dtype": options.reduce_dtype,
            "torch": torch.__version__,
            "device": torch.cuda.get_device_name() if DEVICE == "cuda" else "cpu",
            "figures": figures,
        }
        print(json.dumps(result))
        if options.output:
            with open(options.output, "w") as out:
                json.dump(result, out, indent=1)
                out.write("\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
