#!/usr/bin/env python3
"""Counts what transformers' models keep for the backward pass, tensor by tensor.

usage: activation_oracle.py [--explain FAMILY]

Writes tests/fixtures/activations/transformers.json: for small models of every family the bytes that
torch.autograd.graph.saved_tensors_hooks sees, as verl 0.9.1's FSDP engine runs them: parameters and
computation in bf16 under CUDA's autocast, no padding, flash attention. Each storage counts once;
parameters, buffers and views of them do not count. Tensors are fake (they have shapes, types and
storages, but no memory), so that CUDA's kernels are chosen without a GPU. Flash attention stands in
by what its varlen kernel saves: q, k, v, output and a log-sum-exp in fp32 for each head and token;
for gated delta nets flash-linear-attention's chunk_gated_delta_rule and causal-conv1d's function by
what theirs save.

A case has bytes of one layer (a model of two less a model of one) and of everything else (a model
of one less a layer), with and without gradient checkpointing, for two numbers of tokens; "else" is
split at the last norm's output. --explain prints the tensors of a family's layer instead.

`adapters`: of one layer between others with low-rank adapters of peft 0.18 beside frozen weights.

`peaks`: of published shapes with two layers and a small vocabulary the most bytes that are live at
once beside parameters, per token: in a pass without gradients, and in the backward pass with
checkpointing (gradients of parameters go as they come); `losses`: the latter with the whole
vocabulary, where the loss is the largest moment. There tensors are fake ones of the CPU,
whose autocast differs from CUDA's in families that are left out.
Written with transformers 5.17.0 and torch 2.11.0.
"""
import argparse
import copy
import json
import pathlib
import weakref

import torch
import transformers
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, AttentionMaskInterface
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

OUT = pathlib.Path(__file__).resolve().parent.parent / "fixtures/activations/transformers.json"
MODELS = OUT.parent.parent / "models"
TOKENS = (64, 192)
PEAK_TOKENS = 8192
PEAKS = ("llama3.1-8b", "mistral-7b", "qwen2.5-7b", "qwen2.5-32b", "qwen3-8b", "mixtral-8x7b",
         "qwen1.5-moe-a2.7b", "qwen3-30b-a3b", "deepseek-v2-lite", "deepseek-v3", "gpt-oss-20b")
ADAPTED = ("llama", "qwen2", "qwen3")
LOSSES = ("llama3.1-8b", "qwen2.5-7b", "qwen3-8b")

SMALL = dict(hidden_size=128, intermediate_size=352, num_attention_heads=8, num_key_value_heads=2,
             vocab_size=512, max_position_embeddings=4096)
WIDE = dict(SMALL, hidden_size=192, num_attention_heads=4, num_key_value_heads=4, vocab_size=640)
DEEP = dict(SMALL, hidden_size=256, intermediate_size=480, num_attention_heads=16)
DENSE = (SMALL, WIDE, DEEP)
HEADS = tuple(dict(shape, head_dim=d) for shape, d in zip(DENSE, (32, 64, 8)))
QWEN_MOE = tuple(dict(shape, moe_intermediate_size=columns, num_experts=e, num_experts_per_tok=k,
                      norm_topk_prob=norm)
                 for shape, columns, e, k, norm in
                 zip(HEADS, (96, 160, 64), (8, 24, 16), (2, 3, 8), (False, True, True)))
QWEN2_MOE = tuple({**{k: v for k, v in shape.items() if k != "head_dim"},
                   "shared_expert_intermediate_size": columns}
                  for shape, columns in zip(QWEN_MOE, (96, 224, 64)))
EXPERTS = tuple(dict(shape, num_local_experts=e, num_experts_per_tok=k)
                for shape, e, k in zip(HEADS, (8, 24, 16), (2, 3, 8)))
LATENT = tuple({**{k: v for k, v in shape.items()}, "num_key_value_heads": shape["num_attention_heads"],
                "moe_intermediate_size": columns, "n_routed_experts": e, "num_experts_per_tok": k,
                "n_shared_experts": s, "n_group": g, "topk_group": t, "q_lora_rank": q,
                "kv_lora_rank": c, "qk_nope_head_dim": nope, "qk_rope_head_dim": rope,
                "v_head_dim": v, "head_dim": rope, "norm_topk_prob": norm,
                "topk_method": "group_limited_greedy" if g > 1 else "greedy"}
               for shape, columns, e, k, s, g, t, q, c, nope, rope, v, norm in
               zip(DENSE, (96, 160, 64), (8, 24, 16), (2, 3, 8), (1, 2, 1), (2, 4, 1), (1, 2, 1),
                   (48, 96, None), (64, 32, 40), (32, 16, 64), (16, 8, 32), (32, 24, 64),
                   (False, True, True)))
GPT2 = tuple(dict(n_embd=h, n_inner=f, n_head=n, vocab_size=v, n_positions=512)
             for h, f, n, v in ((128, 352, 8, 512), (192, 768, 4, 640), (256, 480, 16, 512)))

GLM = tuple(dict(shape, moe_intermediate_size=columns, n_routed_experts=e, num_experts_per_tok=k,
                 n_shared_experts=s, n_group=g, topk_group=1, first_k_dense_replace=0, use_qk_norm=norm)
            for shape, columns, e, k, s, g, norm in
            zip(HEADS, (96, 160, 64), (8, 24, 16), (2, 3, 8), (1, 2, 1), (1, 2, 1),
                (False, True, True)))
NETS = tuple(dict(linear_num_key_heads=k, linear_num_value_heads=v, linear_key_head_dim=dk,
                  linear_value_head_dim=dv) for k, v, dk, dv in
             ((2, 4, 32, 64), (4, 4, 16, 32), (2, 8, 64, 16)))
HYBRID = tuple({**shape, **net} for shape, net in zip(HEADS, NETS))
ROUTED = tuple(dict(moe_intermediate_size=columns, num_experts=e, num_experts_per_tok=k,
                    shared_expert_intermediate_size=s)
               for columns, e, k, s in zip((96, 160, 64), (8, 24, 16), (2, 3, 8), (96, 224, 64)))
HYBRID_MOE = tuple({**shape, **moe} for shape, moe in zip(HYBRID, ROUTED))
HUNYUAN = tuple(dict(shape, moe_intermediate_size=columns, num_experts=e, num_experts_per_tok=k,
                     num_shared_experts=s)
                for shape, columns, e, k, s in zip(HEADS, (96, 160, 64), (8, 24, 16), (2, 3, 8),
                                                   (1, 2, 1)))
OLMOE = tuple(dict(shape, num_experts=e, num_experts_per_tok=k, norm_topk_prob=norm)
              for shape, e, k, norm in zip(DENSE, (8, 24, 16), (2, 3, 8), (False, True, True)))
ERNIE = tuple(dict(shape, moe_intermediate_size=columns, moe_num_experts=e, moe_k=k,
                   moe_num_shared_experts=s, moe_layer_start_index=0)
              for shape, columns, e, k, s in zip(DENSE, (96, 160, 64), (8, 24, 16), (2, 3, 8),
                                                 (1, 2, 0)))
HUNYUAN_V1 = tuple(dict(shape, num_experts=e, moe_topk=k)
                   for shape, e, k in zip(HEADS, (8, 24, 16), (2, 3, 8)))
BLOCKS = tuple(dict({k: v for k, v in shape.items() if k != "num_hidden_layers"},
                    mamba_num_heads=n, mamba_head_dim=d, n_groups=g, ssm_state_size=state,
                    chunk_size=32, moe_intermediate_size=columns, n_routed_experts=e,
                    num_experts_per_tok=k, moe_shared_expert_intermediate_size=s)
               for shape, n, d, g, state, columns, e, k, s in
               zip(HEADS, (4, 8, 6), (32, 16, 64), (2, 4, 1), (16, 32, 64), (96, 160, 64),
                   (8, 24, 16), (2, 3, 8), (96, 224, 64)))
BLOCKS += dict(BLOCKS[2], moe_latent_size=48),
SECTIONS = tuple(dict(shape, rope_parameters=dict(
    rope_type="default", rope_theta=1e4, mrope_section=[pairs - 2 * (pairs // 4), pairs // 4, pairs // 4]))
                 for shape in DENSE
                 for pairs in (shape["hidden_size"] // shape["num_attention_heads"] // 2,))
SECTIONS_MOE = tuple(
    {**{k: v for k, v in glm.items() if k not in ("use_qk_norm", "head_dim")}, **shape,
     "rope_parameters": dict(shape["rope_parameters"], partial_rotary_factor=1.0)}
    for shape, glm in zip(SECTIONS, GLM))
LLAMA4 = tuple(dict(shape, intermediate_size_mlp=columns, num_local_experts=e, num_experts_per_tok=k,
                    use_qk_norm=norm)
               for shape, columns, e, k, norm in zip(HEADS, (480, 288, 416), (4, 6, 3), (1, 2, 3),
                                                     (True, True, False)))
INDEXED = tuple(dict(shape, q_lora_rank=q, index_n_heads=n, index_head_dim=d, index_topk=k)
                for shape, q, n, d, k in zip(LATENT, (48, 96, 64), (4, 2, 8), (32, 16, 48),
                                             (16, 32, 24)))
SHARED = INDEXED[:2] + (dict(INDEXED[2], index_topk_freq=2, index_skip_topk_offset=1),)
ENTRIES = tuple({**{k: v for k, v in shape.items() if k not in (
                    "intermediate_size", "num_key_value_heads")},
                 "moe_intermediate_size": columns, "n_routed_experts": e, "num_experts_per_tok": k,
                 "q_lora_rank": q, "o_groups": g, "o_lora_rank": rank, "index_n_heads": n,
                 "index_head_dim": d, "index_topk": top, "sliding_window": 16, "hc_mult": streams,
                 "hc_sinkhorn_iters": steps, "partial_rotary_factor": 0.25, "compress_rates": dict(
                     compressed_sparse_attention=csa, heavily_compressed_attention=hca)}
                for shape, columns, e, k, q, g, rank, n, d, top, streams, steps, csa, hca in
                zip(HEADS, (96, 160, 64), (8, 24, 16), (2, 3, 6), (48, 96, 64), (2, 4, 1), (40, 24, 96),
                    (4, 2, 8), (16, 32, 16), (16, 32, 24), (4, 2, 3), (5, 20, 2), (4, 2, 4),
                    (2, 4, 4)))
LIGHTNING = tuple(dict(shape, block_size=block) for shape, block in zip(EXPERTS, (16, 16, 32)))
SPARSE, DENSE_MLP = (dict(mlp_layer_types=[kind] * 2) for kind in ("sparse", "dense"))
FULL, NET = (dict(layer_types=[kind] * 2) for kind in ("full_attention", "linear_attention"))
PLAIN = dict(mlp_only_layers=[0, 1])

# Kinds of layers that families have which others do not: of each the keys that make it.
KINDS = {
    "qwen3_next": {"sparse": FULL, "dense": {**FULL, **PLAIN}, "linear sparse": NET,
                   "linear dense": {**NET, **PLAIN}},
    "qwen3_5_text": {"dense": FULL, "linear dense": NET},
    "qwen3_5_moe_text": {"sparse": FULL, "linear sparse": NET},
    "glm4_moe_lite": {"sparse": SPARSE, "dense": DENSE_MLP},
    "hy_v3": {"sparse": SPARSE, "dense": DENSE_MLP},
    "minimax": {"sparse": FULL, "linear sparse": NET},
    "glm_moe_dsa": {name + " " + kind if name else kind: dict(
        indexer_types=["full", "shared" if name else "full"],
        first_k_dense_replace=2 if kind == "dense" else 0)
        for name in ("", "shared choice") for kind in ("sparse", "dense")},
    "deepseek_v4": {f"{name} {kind}": dict(layer_types=[attention] * 2, mlp_layer_types=[mlp] * 2)
                    for name, attention in (("window", "sliding_attention"),
                                            ("chosen", "compressed_sparse_attention"),
                                            ("all", "heavily_compressed_attention"))
                    for kind, mlp in (("sparse", "moe"), ("hash", "hash_moe"))},
    "nemotron_h": {name: dict(layers_block_type=[kind] * 2) for name, kind in (
        ("state space alone", "linear_attention"), ("attention alone", "full_attention"),
        ("mlp alone", "mlp"), ("experts alone", "moe"))},
}

# Layers that differ though they are of one kind: a model of each alone.
ALONE = {
    "llama4_text": [(mlp, dict(moe_layers=moe, no_rope_layers=[rope] * 2))
                    for mlp, moe in (("sparse", [0, 1]), ("dense", [])) for rope in (1, 0)],
}

# Language models that a config.json nests beside a vision tower.
NESTED = ("qwen3_5_text", "qwen3_5_moe_text", "glm4v_text", "glm4v_moe_text", "llama4_text")

# Of each family: its shapes, and the keys that make all layers dense where it has experts.
FAMILIES = {
    "llama": (HEADS, None), "mistral": (HEADS, None), "qwen2": (DENSE, None),
    "qwen3": (HEADS, None), "mixtral": (EXPERTS, None),
    "qwen2_moe": (QWEN2_MOE, dict(mlp_only_layers=[0, 1])),
    "qwen3_moe": (QWEN_MOE, dict(mlp_only_layers=[0, 1])),
    "deepseek_v2": (LATENT, dict(first_k_dense_replace=2)),
    "deepseek_v3": (LATENT, dict(first_k_dense_replace=2)),
    "gpt2": (GPT2, None), "gpt_oss": (EXPERTS, None), "nemotron": (HEADS, None),
    "gemma2": (HEADS, None), "gemma3_text": (HEADS, None), "phi3": (DENSE, None),
    "olmo2": (DENSE, None), "seed_oss": (HEADS, None),
    "glm4_moe": (GLM, dict(first_k_dense_replace=2)),
    "minimax_m2": (EXPERTS, None), "hy_v3": (HUNYUAN, None), "nemotron_h": (BLOCKS, None),
    "glm4v_text": (SECTIONS, None),
    "glm4v_moe_text": (SECTIONS_MOE, dict(first_k_dense_replace=2)), "llama4_text": (LLAMA4, None),
    "deepseek_v32": (INDEXED, dict(first_k_dense_replace=2)),
    "glm_moe_dsa": (SHARED, dict(first_k_dense_replace=2)), "deepseek_v4": (ENTRIES, None),
    "glm4_moe_lite": (LATENT, None), "olmo3": (DENSE, None), "minimax": (LIGHTNING, None),
    "glm4": (HEADS, None), "smollm3": (DENSE, None), "ministral": (HEADS, None),
    "ministral3": (HEADS, None), "olmoe": (OLMOE, None), "ernie4_5": (HEADS, None),
    "ernie4_5_moe": (ERNIE, dict(moe_layer_start_index=2)), "hunyuan_v1_dense": (HEADS, None),
    "hunyuan_v1_moe": (HUNYUAN_V1, None),
    "qwen3_next": (HYBRID_MOE, None), "qwen3_5_text": (HYBRID, None),
    "qwen3_5_moe_text": (HYBRID_MOE, None),
}
FIXED = {
    "deepseek_v2": dict(first_k_dense_replace=0),
    "deepseek_v3": dict(first_k_dense_replace=0),
    "deepseek_v32": dict(first_k_dense_replace=0),
    "glm_moe_dsa": dict(first_k_dense_replace=0),
    "olmo3": dict(pad_token_id=None),
    "gpt2": dict(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0),
    "phi3": dict(pad_token_id=None), "glm4": dict(pad_token_id=None, eos_token_id=2),
    "smollm3": dict(pad_token_id=None, bos_token_id=1, eos_token_id=2),
    "olmoe": dict(eos_token_id=2),
}


class FlashAttention(torch.autograd.Function):
    """What flash_attn_varlen_func saves; of sparse attention the chosen keys besides."""

    @staticmethod
    def forward(ctx, q, k, v, *chosen):
        out = torch.empty_like(q)
        lse = q.new_empty(q.shape[1], q.shape[0], dtype=torch.float32)
        ctx.save_for_backward(q, k, v, out, lse, *chosen)
        return out

    @staticmethod
    def backward(ctx, grad):
        kept = ctx.saved_tensors  # checkpoints give them once
        return *[torch.empty_like(x) for x in kept[:3]], *[None] * (len(kept) - 5)


def flash_attention(module, query, key, value, mask, indices=None, **_):
    """transformers' integrations/flash_attention.py for packed sequences, kernel aside."""
    query, key, value = (x.transpose(1, 2) for x in (query, key, value))
    head, value_head = query.shape[-1], value.shape[-1]
    if head != value_head:
        value = torch.nn.functional.pad(value, [0, head - value_head])
    query, key, value = (x.contiguous().view(-1, *x.shape[-2:]) for x in (query, key, value))
    chosen = () if indices is None else (indices,)
    out = FlashAttention.apply(query, key, value, *chosen).unsqueeze(0)
    return (out[..., :value_head] if head != value_head else out), None


class DeltaRule(torch.autograd.Function):
    """What flash-linear-attention's ChunkGatedDeltaRuleFunction saves (ops/gated_delta_rule/chunk.py):
    queries and keys normalised, with their norms, values, decays summed over chunks of 64, steps,
    and each chunk's inverse."""

    @staticmethod
    def forward(ctx, q, k, v, g, beta):
        q, k, v = torch.empty_like(q), torch.empty_like(k), v.contiguous()
        norms = [q.new_empty(q.shape[:-1], dtype=torch.float32) for _ in range(2)]
        inverse = k.new_empty(*k.shape[:-1], 64)
        ctx.save_for_backward(q, k, v, *norms, torch.empty_like(g), beta, inverse)
        return torch.empty_like(v)

    @staticmethod
    def backward(ctx, grad):
        q, k, v, _, _, g, beta, _ = ctx.saved_tensors
        return tuple(torch.empty_like(x) for x in (q, k, v, g, beta))


class Convolution(torch.autograd.Function):
    """What causal-conv1d's CausalConv1dFn saves (causal_conv1d_interface.py): its input and weight."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx, grad):
        return tuple(torch.empty_like(x) for x in ctx.saved_tensors)


class SplitScan(torch.autograd.Function):
    """What mamba_ssm's MambaSplitConv1dScanCombinedFn saves (ops/triton/ssd_combined.py): the first
    projection's output, what the norm divides, 1 / rms of every group in fp32, and small tensors."""

    @staticmethod
    def forward(ctx, projected, A, out_weight, inner, groups):
        scanned = projected.new_empty(*projected.shape[:-1], inner)
        rstd = projected.new_empty(projected.shape[:-1].numel() * groups, dtype=torch.float32)
        ctx.save_for_backward(projected, A, scanned, rstd, out_weight)
        return projected.new_empty(*projected.shape[:-1], out_weight.shape[0])

    @staticmethod
    def backward(ctx, grad):
        projected, A, _, _, weight = ctx.saved_tensors
        return tuple(torch.empty_like(x) for x in (projected, A, weight)) + (None, None)


def stand_in_for_state_spaces():
    from transformers.models.nemotron_h import modeling_nemotron_h
    modeling_nemotron_h.mamba2_split_conv1d_scan_combined = (
        lambda projected, conv_weight, conv_bias, dt_bias, A, *, outproj_weight, rmsnorm_weight,
        ngroups, **_: SplitScan.apply(projected, A, outproj_weight, rmsnorm_weight.numel(), ngroups))


def language_model(module, name, config_class):
    """A tower's language model with its head, which transformers has beside the tower alone."""

    class ForCausalLM(getattr(module, name + "PreTrainedModel")):
        def __init__(self, config):
            super().__init__(config)
            self.model = getattr(module, name + "TextModel")(config)
            self.lm_head = torch.nn.Linear(config.hidden_size, config.vocab_size, bias=False)

        def forward(self, **inputs):
            out = self.model(**inputs)
            return transformers.modeling_outputs.CausalLMOutputWithPast(
                logits=self.lm_head(out.last_hidden_state), past_key_values=out.past_key_values)

    ForCausalLM.__module__ = module.__name__  # where transformers looks for grouped experts
    ForCausalLM.config_class = config_class
    ForCausalLM.__annotations__["config"] = config_class
    # register() passes over configurations of transformers itself.
    transformers.AutoModelForCausalLM._model_mapping._extra_content[config_class] = ForCausalLM


language_model(transformers.models.glm4v.modeling_glm4v, "Glm4v", transformers.Glm4vTextConfig)
language_model(transformers.models.glm4v_moe.modeling_glm4v_moe, "Glm4vMoe",
               transformers.models.glm4v_moe.configuration_glm4v_moe.Glm4vMoeTextConfig)


def stand_in_for_linear_attention():
    from transformers.models.qwen3_5 import modeling_qwen3_5
    from transformers.models.qwen3_5_moe import modeling_qwen3_5_moe
    from transformers.models.qwen3_next import modeling_qwen3_next
    for module in (modeling_qwen3_5, modeling_qwen3_5_moe, modeling_qwen3_next):
        module.torch_chunk_gated_delta_rule = (
            lambda q, k, v, g, beta, **_: (DeltaRule.apply(q, k, v, g, beta), None))
        module.causal_conv1d_fn = lambda x, weight, *_, **__: Convolution.apply(x, weight)


class LogProbs(torch.autograd.Function):
    """What flash-attn's cross entropy saves, by which verl takes log-probabilities."""

    @staticmethod
    def forward(ctx, logits, labels):
        lse = logits.new_empty(logits.shape[0], dtype=torch.float32)
        ctx.save_for_backward(logits, lse, labels)
        return torch.empty_like(lse)

    @staticmethod
    def backward(ctx, grad):
        return ctx.saved_tensors[0], None


class Kept:
    """A saved tensor, for as long as the backward pass can reach it."""

    def __init__(self, tensor):
        self.tensor = tensor


def config_of(family, shape, layers, keys):
    depth = "n_layer" if family == "gpt2" else "num_hidden_layers"
    keys = dict(keys or {})
    for key in ("layer_types", "mlp_layer_types", "layers_block_type", "no_rope_layers",
                "indexer_types"):
        if key in keys:
            keys[key] = keys[key][:layers]
    if "moe_layers" in keys:
        keys["moe_layers"] = [layer for layer in keys["moe_layers"] if layer < layers]
    if family == "nemotron_h":  # as many layers as blocks, of every kind where none is asked for
        return transformers.AutoConfig.for_model(family, **{**shape, **keys})
    return transformers.AutoConfig.for_model(family, **{**shape, depth: layers,
                                                        **FIXED.get(family, {}), **keys})


def stated(family, shape, keys=None):
    """The shape as a model's file states it that has layers of every kind."""
    hybrid = family in KINDS or family in ALONE
    if keys and family == "llama4_text":  # a model without experts is none of this family
        keys = dict(no_rope_layers=keys["no_rope_layers"] * 2, moe_layers=keys["moe_layers"] or [3])
    plain = config_of(family, shape, 4 if hybrid else 1, keys).to_diff_dict()
    plain.pop("time_step_limit", None)  # of Nemotron-H: infinite, which JSON has no word for
    if family not in NESTED:
        return plain
    if family == "llama4_text":
        tower = dict(num_hidden_layers=1, hidden_size=16, intermediate_size=64,
                     num_attention_heads=2, vision_output_dim=4096)
        return dict(model_type="llama4", text_config=plain, vision_config=tower)
    tower = dict(depth=1, hidden_size=16, intermediate_size=16, num_heads=2,
                 out_hidden_size=shape["hidden_size"])
    return dict(model_type=family.removesuffix("_text"), text_config=plain,
                vision_config=tower)


def adapted(model, rank):
    """peft's model with adapters of every linear weight, in the weights' type as FSDP2 gathers them."""
    import peft
    from peft.tuners.tuners_utils import BaseTunerLayer

    def made(layer, name, *_, **__):
        for module in (layer.lora_A[name], layer.lora_B[name]):
            module.weight = torch.nn.Parameter(torch.empty(module.weight.shape, dtype=torch.bfloat16))

    moved, kept = torch.nn.Module.to, BaseTunerLayer._move_adapter_to_device_of_base_layer
    torch.nn.Module.to = lambda self, *_, **__: self  # fake tensors cannot be swapped
    BaseTunerLayer._move_adapter_to_device_of_base_layer = made
    try:
        return peft.get_peft_model(model, peft.LoraConfig(
            r=rank, target_modules="all-linear", task_type="CAUSAL_LM"), autocast_adapter_dtype=False)
    finally:
        torch.nn.Module.to, BaseTunerLayer._move_adapter_to_device_of_base_layer = moved, kept


def saved(config, tokens, checkpointing, head, log=None, rank=0):
    """Bytes that stay until the backward pass. head: with logits and log-probabilities. rank: of
    peft's adapters, beside frozen weights."""
    with FakeTensorMode(), torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(
            copy.deepcopy(config), dtype=torch.bfloat16)
        model.config._attn_implementation = "sparse" if hasattr(config, "index_topk") else (
            "flash_attention_2")
        model.train()
        if checkpointing:  # as verl asks for it
            model.gradient_checkpointing_enable(dict(use_reentrant=False))
        model = adapted(model, rank) if rank else model
        ids = torch.empty(1, tokens, dtype=torch.int64)
        places = torch.empty(1, tokens, dtype=torch.int64)
        body = model if head else getattr(model, "model", model.base_model)
        packed = []

        def pack(x):
            # Without its graph: an operator's own output would keep the operator for ever.
            packed.append(weakref.ref(kept := Kept(x.detach())))
            return kept

        torch.set_autocast_dtype("cuda", torch.bfloat16)
        torch.set_autocast_enabled("cuda", True)
        try:
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept.tensor):
                out = body(input_ids=ids, position_ids=places, use_cache=False)
                if head:
                    log_probs = LogProbs.apply(out.logits.squeeze(0), ids.roll(-1).squeeze(0))
                    out = None
        finally:
            torch.set_autocast_enabled("cuda", False)
        counted = {x.untyped_storage()._cdata for x in (*model.parameters(), *model.buffers())}
        total = 0
        for x in (kept.tensor for kept in (ref() for ref in packed) if kept is not None):
            storage = x.untyped_storage()
            if storage._cdata in counted:
                continue
            counted.add(storage._cdata)
            total += storage.nbytes()
            if log is not None:
                log.append(f"{storage.nbytes() / tokens:10.2f}  {tuple(x.shape)} {x.dtype}")
    return total


def case(family, shape, keys, kind):
    one, two = (config_of(family, shape, n, keys) for n in (1, 2))
    result = dict(family=family, kind=kind)
    for name, checkpointing in (("kept", False), ("checkpointed", True)):
        for tokens in TOKENS:
            whole = saved(one, tokens, checkpointing, True)
            layer = saved(two, tokens, checkpointing, True) - whole
            body = saved(one, tokens, checkpointing, False)
            result.setdefault(name, []).append(dict(tokens=tokens, layer=layer, ends=body - layer,
                                                    head=whole - body))
    result["config"] = {**stated(family, shape, keys if family in ALONE else None), "architectures": [
        "GPT2LMHeadModel" if family == "gpt2" else
        transformers.AutoModelForCausalLM._model_mapping[type(one)].__name__]}
    return result


def adapted_case(family, shape, rank):
    """Of one layer with adapters, whose input has a gradient."""
    two, three = (config_of(family, shape, n, None) for n in (2, 3))
    return dict(family=family, rank=rank, kept=[
        dict(tokens=tokens, layer=saved(three, tokens, False, True, rank=rank) -
             saved(two, tokens, False, True, rank=rank)) for tokens in TOKENS],
        config={**stated(family, shape), "architectures": [
            transformers.AutoModelForCausalLM._model_mapping[type(two)].__name__]})


class Live(TorchDispatchMode):
    """Bytes of live storages, those of `held` aside."""

    def __init__(self, held):
        super().__init__()
        self.sizes = dict.fromkeys(held, 0)
        self.now = self.most = 0

    def drop(self, key):
        self.now -= self.sizes.pop(key, 0)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for x in tree_leaves(out):
            if isinstance(x, torch.Tensor) and x.untyped_storage()._cdata not in self.sizes:
                storage = x.untyped_storage()
                self.sizes[storage._cdata] = storage.nbytes()
                self.now += storage.nbytes()
                weakref.finalize(storage, self.drop, storage._cdata)
        self.most = max(self.most, self.now)
        return out


def peak(config, train):
    """Most live bytes of a token in a pass, checkpointed where it trains."""
    with FakeTensorMode(), torch.device("cpu"):
        model = transformers.AutoModelForCausalLM.from_config(copy.deepcopy(config),
                                                              dtype=torch.bfloat16)
        model.config._attn_implementation = "flash_attention_2"
        model.train(train)
        model.gradient_checkpointing_enable(dict(use_reentrant=False))
        for x in model.parameters():
            x.register_post_accumulate_grad_hook(lambda x: setattr(x, "grad", None))
        live = Live({x.untyped_storage()._cdata for x in (*model.parameters(), *model.buffers())})
        ids = torch.empty(1, PEAK_TOKENS, dtype=torch.int64)
        places = torch.empty(1, PEAK_TOKENS, dtype=torch.int64)
        with live, torch.set_grad_enabled(train):
            with torch.autocast("cpu", torch.bfloat16):
                logits = model(input_ids=ids, position_ids=places, use_cache=False).logits
                loss = LogProbs.apply(logits.squeeze(0), ids.roll(-1).squeeze(0)).mean()
                del logits
            if train:
                live.most = 0
                loss.backward()
    return live.most / PEAK_TOKENS


def two_layers(name, vocabulary=None):
    config = transformers.AutoConfig.from_pretrained(MODELS / name)
    config.num_hidden_layers = 2
    config.vocab_size = vocabulary or config.vocab_size
    config.layer_types = getattr(config, "layer_types", None) and config.layer_types[:2]
    config.bos_token_id = config.eos_token_id = config.pad_token_id = None
    if hasattr(config, "first_k_dense_replace"):
        config.first_k_dense_replace = 0
    return config


def peaks_of(name):
    config = two_layers(name, 64)
    return dict(model=name, forward=peak(config, False), backward=peak(config, True))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--explain", metavar="FAMILY")
    args = parser.parse_args()
    ALL_ATTENTION_FUNCTIONS["flash_attention_2"] = flash_attention
    ALL_ATTENTION_FUNCTIONS["sparse"] = flash_attention  # with a mask, for the indexer
    AttentionMaskInterface.register("sparse", ALL_MASK_ATTENTION_FUNCTIONS["sdpa"])
    stand_in_for_linear_attention()
    stand_in_for_state_spaces()
    torch.cuda.get_device_capability = lambda *_: (9, 0)  # grouped products run
    if args.explain:
        shapes, dense = FAMILIES[args.explain]
        every = [keys for _, keys in ALONE.get(args.explain, ())]
        every = every or KINDS.get(args.explain, {}).values() or ((None, dense) if dense else (None,))
        for keys in every:
            log = []
            total = saved(config_of(args.explain, shapes[0], 1, keys), TOKENS[0], False, True, log)
            print(f"{total / TOKENS[0]:10.2f}  all, {shapes[0]}", *log, sep="\n")
        return
    cases = []
    for family, (shapes, dense) in FAMILIES.items():
        for shape in shapes:
            for kind, keys in (*KINDS.get(family, {}).items(), *ALONE.get(family, ())):
                cases.append(case(family, shape, keys, kind))
            if family in KINDS or family in ALONE:
                continue
            sparse = dense is not None or {"num_local_experts", "num_experts"} & shape.keys()
            cases.append(case(family, shape, None, "sparse" if sparse else "dense"))
            if dense:
                cases.append(case(family, shape, dense, "dense"))
        print(family, len(cases))
    peaks = [peaks_of(name) for name in PEAKS]
    adapters = [adapted_case(family, shape, rank) for family in ADAPTED
                for shape, rank in zip(FAMILIES[family][0], (8, 16, 5))]
    losses = [dict(model=name, most=peak(two_layers(name), True)) for name in LOSSES]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(f'{{"transformers": "{transformers.__version__}", "torch": "{torch.__version__}", '
                   '"cases": [\n' + ",\n".join(map(json.dumps, cases)) + '\n],\n"adapters": [\n' +
                   ",\n".join(map(json.dumps, adapters)) + '\n],\n"peaks": [\n' +
                   ",\n".join(map(json.dumps, peaks)) + '\n],\n"losses": [\n' +
                   ",\n".join(map(json.dumps, losses)) + "\n]}\n")


if __name__ == "__main__":
    main()
