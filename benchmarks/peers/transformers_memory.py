"""Memory that transformers' modules take on one GPU, beside what the planner's account says.

usage: python benchmarks/peers/transformers_memory.py [--shapes NAME ...] [--tokens 8192]
           [--layers 4] [-o FILE]

A model of few layers with random weights, built from sizes: nothing is downloaded, no flash-attn is
needed (scaled_dot_product_attention's flash kernel saves the same tensors). bf16 parameters under
autocast, as verl's FSDP engine computes; every gradient of a parameter is dropped as it is made, as
FSDP does by reducing it. One line of JSON for each measurement, bytes:
  train       allocated after the forward pass, and at most in forward and backward, less parameters,
              with and without gradient checkpointing
  score       at most in a pass without gradients that ends in log-probabilities
  entropy     at most beside the logits: torch.compile'd entropy as verl takes it, alone and with the
              log-probabilities' backward pass
  adamw       at most in a step of torch.optim.AdamW beside parameters, gradients and states
  device      what the device has in use outside of the allocator
`predicted` is the formula of cost_models/transformers for the same numbers. About two minutes on an
H200 for the four shapes.
"""

import argparse
import gc
import json
import sys

import torch
import torch.nn.functional as F
import transformers
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

SHAPES = {
    "qwen2.5-7b": ("qwen2", dict(hidden_size=3584, intermediate_size=18944, num_attention_heads=28,
                                 num_key_value_heads=4, vocab_size=152064)),
    "llama3.1-8b": ("llama", dict(hidden_size=4096, intermediate_size=14336, num_attention_heads=32,
                                  num_key_value_heads=8, vocab_size=128256)),
    "qwen3-8b": ("qwen3", dict(hidden_size=4096, intermediate_size=12288, num_attention_heads=32,
                               num_key_value_heads=8, head_dim=128, vocab_size=151936)),
    "qwen3-30b-a3b": ("qwen3_moe", dict(hidden_size=2048, moe_intermediate_size=768, num_experts=128,
                                        num_experts_per_tok=8, norm_topk_prob=True,
                                        num_attention_heads=32, num_key_value_heads=4, head_dim=128,
                                        vocab_size=151936)),
}
OUT = []


def report(**line):
    OUT.append(json.dumps(line))
    print(OUT[-1], flush=True)


def attention(module, query, key, value, mask, scaling=None, **_):
    out = F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scaling,
                                         enable_gqa=query.shape[1] != key.shape[1])
    return out.transpose(1, 2).contiguous(), None


class LogProbs(torch.autograd.Function):
    """flash-attn's cross entropy: a log-sum-exp is kept, the gradient may overwrite the logits."""

    ROWS = 512

    @staticmethod
    def forward(ctx, logits, labels, in_place):
        lse = torch.cat([part.float().logsumexp(-1) for part in logits.split(LogProbs.ROWS)])
        ctx.save_for_backward(logits, lse, labels)
        ctx.in_place = in_place
        return logits.gather(1, labels[:, None]).squeeze(1).float() - lse

    @staticmethod
    def backward(ctx, grad):
        logits, lse, labels = ctx.saved_tensors
        out = logits if ctx.in_place else torch.empty_like(logits)
        for rows in torch.arange(len(labels), device=labels.device).split(LogProbs.ROWS):
            part = -(logits[rows].float() - lse[rows, None]).exp()
            part.scatter_add_(1, labels[rows, None], torch.ones_like(part[:, :1]))
            out[rows] = (part * grad[rows, None]).to(out.dtype)
        return out, None, None


def entropy_from_logits(logits):  # verl/utils/torch_functional.py
    pd = torch.nn.functional.softmax(logits, dim=-1)
    return torch.logsumexp(logits, dim=-1) - torch.sum(pd * logits, dim=-1)


def predicted(shape, layers, tokens):
    h, v = shape["hidden_size"], shape["vocab_size"]
    q, kv = shape["num_attention_heads"], shape["num_key_value_heads"]
    d = shape.get("head_dim", h // q)
    norm = 6 * h + 4
    layer = 2 * (norm + 2 * h) + 4 * q * d + 4 * kv * d + 4 * q
    if "head_dim" in shape:
        layer += (q + kv) * (6 * d + 4)
    if "num_experts" in shape:
        k, e, f = shape["num_experts_per_tok"], shape["num_experts"], shape["moe_intermediate_size"]
        layer += k * (8 * f + 4 * h + 27) + 4 * e + 8 * k + 4 + 4 * k
        forward, backward = max(8 * k * h, 2 * k * h + 8 * k * f), max(6 * k * h, 4 * k * f)
    else:
        f = shape["intermediate_size"]
        layer += 8 * f
        forward, backward = 6 * f, 4 * f
    outside = norm + 2 * h + 8 + 4 * d
    logits, head = 2 * v * tokens, 2 * v * h
    at_loss = tokens * (outside + 2 * h) + logits + head
    result = {}
    for name, kept, again in (("kept", layers * layer, 0), ("checkpointed", layers * 2 * h, layer)):
        result[name] = tokens * (kept + outside) + logits
        norm_peak = outside + 16 * h if name == "kept" else 0
        result[name + "_peak"] = max(tokens * kept + at_loss, tokens *
                                     (kept + again + max(2 * h + backward, norm_peak)))
    result["score"] = max(tokens * (8 * h + forward), logits + tokens * 4 * h)
    return result


class Peak:
    """Bytes that the allocator has at most inside, and at the end, more than at the start."""

    def __enter__(self):
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        self.start = torch.cuda.memory_allocated()
        self.reserved_start = torch.cuda.memory_reserved()
        return self

    def now(self):
        return torch.cuda.memory_allocated() - self.start

    def __exit__(self, *_):
        torch.cuda.synchronize()
        self.most = torch.cuda.max_memory_allocated() - self.start
        self.reserved = torch.cuda.max_memory_reserved() - self.reserved_start


def measure(name, family, shape, layers, tokens):
    config = transformers.AutoConfig.for_model(family, **shape, num_hidden_layers=layers,
                                               max_position_embeddings=max(tokens, 4096),
                                               tie_word_embeddings=False)
    with torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
        ids = torch.randint(0, shape["vocab_size"], (1, tokens))
        places = torch.arange(tokens)[None]
    model.config._attn_implementation = "flash_like"
    want = predicted(shape, layers, tokens)
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(lambda p: setattr(p, "grad", None))

    def step(train):
        with torch.autocast("cuda", torch.bfloat16), torch.set_grad_enabled(train):
            logits = model(input_ids=ids, position_ids=places, use_cache=False).logits.squeeze(0)
            return LogProbs.apply(logits, ids.roll(-1, 1).squeeze(0), True)

    common = dict(shape=name, layers=layers, tokens=tokens)
    for checkpointing in (False, True):
        model.train()
        if checkpointing:
            model.gradient_checkpointing_enable(dict(use_reentrant=False))
        for attempt in ("warm", "measured"):
            with Peak() as peak:
                loss = step(True).mean()
                kept = peak.now()
                loss.backward()
                loss = None
        key = "checkpointed" if checkpointing else "kept"
        report(what="train", checkpointing=checkpointing, kept=kept, peak=peak.most,
               reserved=peak.reserved, predicted_kept=want[key], predicted_peak=want[key + "_peak"],
               **common)
    model.eval()
    with Peak() as peak:
        step(False)
    report(what="score", peak=peak.most, reserved=peak.reserved, predicted_peak=want["score"],
           **common)


def measure_entropy(vocab, tokens):
    compiled = torch.compile(entropy_from_logits, dynamic=True)
    labels = torch.randint(0, vocab, (tokens,), device="cuda")
    for train in (False, True):
        logits = torch.randn(tokens, vocab, device="cuda", dtype=torch.bfloat16)
        logits.requires_grad_(train)
        for _ in range(2):
            with Peak() as peak, torch.autocast("cuda", torch.bfloat16):
                with torch.set_grad_enabled(train):
                    entropy = compiled(logits)
                    log_probs = LogProbs.apply(logits, labels, False)
                if train:
                    (log_probs.mean() - 0.01 * entropy.mean()).backward()
            entropy = log_probs = logits.grad = None
        report(what="entropy", train=train, vocab=vocab, tokens=tokens,
               logits=logits.numel() * 2, peak=peak.most,
               predicted_peak=logits.numel() * (4 if train else 0))


def measure_adamw(elements):
    parts = [torch.nn.Parameter(torch.zeros(elements // 16, device="cuda")) for _ in range(16)]
    optimizer = torch.optim.AdamW(parts, lr=1e-6)
    for _ in range(2):
        for part in parts:
            part.grad = torch.zeros_like(part)
        with Peak() as peak:
            optimizer.step()
    report(what="adamw", elements=elements, peak=peak.most, predicted_peak=4 * elements)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("-o", "--output")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("needs a GPU")
    ALL_ATTENTION_FUNCTIONS["flash_like"] = attention
    report(what="versions", torch=torch.__version__, transformers=transformers.__version__,
           device=torch.cuda.get_device_name())
    for name in args.shapes:
        try:
            measure(name, *SHAPES[name], args.layers, args.tokens)
        except torch.OutOfMemoryError as error:
            report(what="out of memory", shape=name, error=str(error)[:200])
    measure_entropy(152064, args.tokens)
    measure_adamw(1 << 28)
    gc.collect()
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    report(what="device", outside=total - free - torch.cuda.memory_reserved())
    if args.output:
        with open(args.output, "w") as file:
            file.write("\n".join(OUT) + "\n")


if __name__ == "__main__":
    main()
