#!/usr/bin/env python3
"""Counts what a layer of multi-token prediction computes and keeps, as Megatron-Core 0.18 has it.

usage: prediction_oracle.py

Writes tests/fixtures/prediction/mtp.json. The module is MultiTokenPredictionLayer of
megatron/core/transformer/multi_token_prediction.py with the loss of process_mtp_loss, written in
torch: the next tokens' embeddings, enorm, hnorm, both side by side, eh_proj, a transformer layer of
the model's kind (transformers' own), the last norm, and the model's head with
vocab_parallel_cross_entropy. Norms keep their input and 1 / rms, as Transformer Engine's do.

`parameters` without embedding and head, which are the model's. `forward` and `backward`: products
of all tokens by torch.utils.flop_counter; eager attention computes all scores, of which a causal
model needs half. The backward pass makes gradients of the embedding's output and of the hidden
states, too. `kept`, `logits`: bytes of storages that torch.autograd.graph.saved_tensors_hooks sees
outside of the transformer layer, without parameters; those of the cross entropy apart.
Written with transformers 5.17.0 and torch 2.11.0.
"""
import json
import pathlib

import torch
import transformers
from torch.utils.flop_counter import FlopCounterMode
from transformers.models.deepseek_v3 import modeling_deepseek_v3
from transformers.models.qwen2 import modeling_qwen2

OUT = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "prediction" / "mtp.json"
TOKENS = 96
SHAPE = dict(hidden_size=256, intermediate_size=480, num_hidden_layers=2, num_attention_heads=8,
             vocab_size=640, max_position_embeddings=512, bos_token_id=1, eos_token_id=2)
LATENT = dict(SHAPE, num_key_value_heads=8, moe_intermediate_size=96, n_routed_experts=8,
              num_experts_per_tok=2, n_shared_experts=1, n_group=2, topk_group=1,
              first_k_dense_replace=1, q_lora_rank=48, kv_lora_rank=64, qk_nope_head_dim=32,
              qk_rope_head_dim=16, v_head_dim=32)
MODELS = {
    "deepseek_v3": (transformers.DeepseekV3Config(**LATENT),
                    modeling_deepseek_v3.DeepseekV3DecoderLayer,
                    modeling_deepseek_v3.DeepseekV3RotaryEmbedding),
    "mimo": (transformers.Qwen2Config(**SHAPE, num_key_value_heads=2),
             modeling_qwen2.Qwen2DecoderLayer, modeling_qwen2.Qwen2RotaryEmbedding),
}


class Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        rstd = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)
        ctx.save_for_backward(x, rstd, weight)
        return (x.float() * rstd).to(x.dtype) * weight

    @staticmethod
    def backward(ctx, grad):
        x, _, weight = ctx.saved_tensors
        return torch.empty_like(x), torch.empty_like(weight)


class CrossEntropy(torch.autograd.Function):
    """megatron/core/tensor_parallel/cross_entropy.py on one rank."""

    @staticmethod
    def forward(ctx, logits, target):
        logits = logits.float()
        logits = logits - logits.max(-1, keepdim=True).values
        picked = logits.gather(-1, target[..., None])[..., 0]
        exponentials = logits.exp_()
        total = exponentials.sum(-1)
        exponentials.div_(total[..., None])
        ctx.save_for_backward(exponentials, target)
        return total.log() - picked

    @staticmethod
    def backward(ctx, grad):
        return (ctx.saved_tensors[0] * grad[..., None]).to(torch.bfloat16), None


class Prediction(torch.nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        h = config.hidden_size
        self.enorm, self.hnorm, self.last_norm = (torch.nn.Parameter(torch.ones(h))
                                                  for _ in range(3))
        self.eh_proj = torch.nn.Linear(2 * h, h, bias=False)
        self.layer = layer

    def forward(self, ids, hidden, embedding, head, rotary):
        following = torch.nn.functional.pad(ids[:, 1:], (0, 1))
        embedded = embedding(following)
        both = torch.cat((Norm.apply(embedded, self.enorm), Norm.apply(hidden, self.hnorm)), -1)
        out = self.layer(self.eh_proj(both), attention_mask=None, position_embeddings=rotary)
        logits = head(Norm.apply(out, self.last_norm))
        labels = torch.nn.functional.pad(following[:, 1:], (0, 1))
        return CrossEntropy.apply(logits, labels).sum()


class Kept:
    """Storages that are saved outside of a module and are none of `known`."""

    def __init__(self, module, known):
        self.known, self.inside, self.kept, self.logits = known, False, {}, {}
        module.register_forward_pre_hook(lambda *_: setattr(self, "inside", True))
        module.register_forward_hook(lambda *_: setattr(self, "inside", False))

    def pack(self, tensor):
        storage = tensor.untyped_storage()
        if not self.inside and storage.data_ptr() not in self.known:
            wide = tensor.dtype == torch.float32 and tensor.shape[-1] == SHAPE["vocab_size"]
            (self.logits if wide else self.kept)[storage.data_ptr()] = tensor, storage.nbytes()
        return tensor


def products(counter):
    """All of them, and those of attention's scores."""
    total, scores = 0, 0
    for name, operators in counter.get_flop_counts().items():
        if name == "Global":
            total = sum(operators.values())
        if name.endswith(".self_attn"):
            scores += sum(n for op, n in operators.items() if "bmm" in str(op))
    return total, scores


def case(family):
    config, layer_class, rotary_class = MODELS[family]
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    torch.manual_seed(0)
    module = Prediction(config, layer_class(config, config.num_hidden_layers - 1)).bfloat16()
    embedding = torch.nn.Embedding(config.vocab_size, config.hidden_size).bfloat16()
    head = torch.nn.Linear(config.hidden_size, config.vocab_size, bias=False).bfloat16()
    ids = torch.randint(config.vocab_size, (1, TOKENS))
    hidden = torch.randn(1, TOKENS, config.hidden_size, dtype=torch.bfloat16, requires_grad=True)
    rotary = rotary_class(config)(hidden, torch.arange(TOKENS)[None])
    parts = (module, embedding, head)
    # The hidden states are the main model's last norm's output, which its head keeps.
    known = {p.untyped_storage().data_ptr() for part in parts for p in part.parameters()}
    known.add(hidden.untyped_storage().data_ptr())
    kept = Kept(module.layer, known)
    with FlopCounterMode(display=False) as forward:
        with torch.autograd.graph.saved_tensors_hooks(kept.pack, lambda tensor: tensor):
            loss = module(ids, hidden, embedding, head, rotary)
    with FlopCounterMode(display=False) as backward:
        loss.backward()
    total, scores = products(forward)
    stated = dict(config.to_diff_dict(), model_type=family, num_nextn_predict_layers=1)
    return dict(config=stated, tokens=TOKENS,
                parameters=sum(p.numel() for p in module.parameters())
                + sum(b.numel() for n, b in module.named_buffers() if "correction" in n),
                forward=total - scores / 2, backward=sum(
                    backward.get_flop_counts()["Global"].values()) - scores,
                kept=sum(n for _, n in kept.kept.values()),
                logits=sum(n for _, n in kept.logits.values()))


def main():
    OUT.parent.mkdir(parents=True, exist_ok=True)
    cases = [case(family) for family in MODELS]
    OUT.write_text('{"cases": [\n' + ",\n".join(map(json.dumps, cases)) + "\n]}\n")


if __name__ == "__main__":
    main()
