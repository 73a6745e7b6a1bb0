#!/usr/bin/env python3
"""Writes tests/fixtures/models/NAME from transformers, the oracle of names, shapes and logits.

Every folder holds config.json and parameters.json, {checkpoint name: shape} as save_pretrained
would write it (a tied lm_head is absent). Presets of configs/models are built on the meta device.
In their names [a-b] stands for every number from a to b: runs of layers and of experts that have
the same tensors are one entry. Tiny random models of the families that the executor runs also get
model.safetensors in fp32, input_ids.json and logits.safetensors; those with routed experts
gradients.safetensors too: of a loss by parameter, and the load-balancing loss with its own; and
replay.safetensors: the same loss where drawn experts replace the routers' choice.
Written with transformers 5.17.0 and torch 2.11.0.

    python scripts/make_fixtures.py [--only NAME ...]
"""

import argparse
import json
import pathlib
import re
import shutil
import tempfile
import unittest.mock

import torch
import torch.nn.functional as F
import transformers
from safetensors import safe_open
from safetensors.torch import save_file
from transformers.core_model_loading import revert_weight_conversion

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "tests" / "fixtures" / "models"
SEED = 20260101
SEQUENCES, TOKENS = 2, 24

TINY = dict(
    hidden_size=32, intermediate_size=44, num_hidden_layers=4, num_attention_heads=4,
    num_key_value_heads=2, vocab_size=131, max_position_embeddings=64, bos_token_id=1,
    eos_token_id=2, initializer_range=0.2,
)


MOE = dict(TINY, num_hidden_layers=3, initializer_range=0.02)
QWEN_MOE = dict(MOE, moe_intermediate_size=20, num_experts=6, num_experts_per_tok=2)
MLA = dict(
    MOE, num_key_value_heads=4, moe_intermediate_size=20, n_routed_experts=6,
    num_experts_per_tok=2, first_k_dense_replace=1, kv_lora_rank=16, qk_nope_head_dim=8,
    qk_rope_head_dim=4, v_head_dim=6,
)
ENTRIES = dict(
    {k: v for k, v in MOE.items() if k not in ("intermediate_size", "num_key_value_heads")},
    num_hidden_layers=4, head_dim=16, q_lora_rank=24, moe_intermediate_size=20, n_routed_experts=6,
    num_experts_per_tok=2, o_groups=2, o_lora_rank=10, index_n_heads=2, index_head_dim=12,
    index_topk=8, sliding_window=8,
)
VISION = dict(depth=2, hidden_size=16, intermediate_size=20, num_heads=2, out_hidden_size=32)
POSITIONED = dict(VISION, patch_size=4, num_position_embeddings=16)
VISION_TOKENS = dict(vision_start_token_id=5, vision_end_token_id=6, image_token_id=7,
                     video_token_id=8)
VISION_TOKENS_GLM = dict(image_start_token_id=5, image_end_token_id=6, image_token_id=7,
                         video_start_token_id=8, video_end_token_id=9, video_token_id=10)
SINGLE_TOWER = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, image_size=28,
                    patch_size=7)
LLAMA4_TOWER = dict(SINGLE_TOWER, intermediate_size=64, projector_input_dim=24,
                    projector_output_dim=24, vision_output_dim=24)
LINEAR = dict(linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=6,
              linear_value_head_dim=10, linear_conv_kernel_dim=3)


# Buffers that MiniMax's class computes from its configuration, and yet saves: no parameters.
DECAYS = ("slope_rate", "query_decay", "key_decay", "diagonal_decay")


BLOCKS = {**{k: v for k, v in MOE.items() if k != "num_hidden_layers"}, "ssm_state_size": 6,
          "mamba_num_heads": 4, "mamba_head_dim": 10, "n_groups": 2, "chunk_size": 8}


def llama(**more):
    return transformers.LlamaConfig(**TINY, **more)


def rope(**parameters):
    return dict(rope_parameters=dict(rope_theta=10000.0, **parameters))


def tiny_configs():
    """Random models small enough to commit, each with one trait that a reader could get wrong."""
    return {
        "tiny-llama": llama(),
        "tiny-llama-biased": llama(attention_bias=True, mlp_bias=True),
        "tiny-llama-linear": llama(**rope(rope_type="linear", factor=4.0)),
        "tiny-llama-llama3": llama(**rope(
            rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
            original_max_position_embeddings=16)),
        "tiny-llama-yarn": llama(**rope(
            rope_type="yarn", factor=4.0, original_max_position_embeddings=16)),
        "tiny-llama-yarn-mscale": llama(**rope(
            rope_type="yarn", factor=4.0, original_max_position_embeddings=16, mscale=0.7,
            mscale_all_dim=1.3, beta_fast=16, beta_slow=2, truncate=False)),
        "tiny-mistral": transformers.MistralConfig(**TINY, sliding_window=None),
        "tiny-mistral-window": transformers.MistralConfig(**TINY, sliding_window=7),
        "tiny-qwen2": transformers.Qwen2Config(**TINY),
        "tiny-qwen2-tied": transformers.Qwen2Config(**TINY, tie_word_embeddings=True),
        "tiny-qwen2-window": transformers.Qwen2Config(
            **TINY, use_sliding_window=True, sliding_window=9, max_window_layers=0),
        "tiny-qwen3": transformers.Qwen3Config(**TINY, head_dim=12),
        "tiny-qwen3-tied": transformers.Qwen3Config(
            **TINY, head_dim=8, attention_bias=True, tie_word_embeddings=True),
        "tiny-mixtral": transformers.MixtralConfig(
            **MOE, num_local_experts=6, num_experts_per_tok=2),
        "tiny-mixtral-tied": transformers.MixtralConfig(
            **MOE, num_local_experts=6, sliding_window=9, tie_word_embeddings=True),
        "tiny-qwen2-moe": transformers.Qwen2MoeConfig(
            **QWEN_MOE, shared_expert_intermediate_size=40, mlp_only_layers=[1]),
        "tiny-qwen2-moe-unbiased": transformers.Qwen2MoeConfig(
            **QWEN_MOE, shared_expert_intermediate_size=24, qkv_bias=False,
            decoder_sparse_step=2),
        "tiny-qwen3-moe": transformers.Qwen3MoeConfig(
            **QWEN_MOE, head_dim=12, norm_topk_prob=True),
        "tiny-qwen3-moe-step": transformers.Qwen3MoeConfig(
            **QWEN_MOE, head_dim=8, attention_bias=True, decoder_sparse_step=2,
            tie_word_embeddings=True),
    }


def planned_configs():
    """Tiny models of the families that are planned but not executed: names and shapes only."""
    t = transformers
    gpt2 = dict(n_embd=32, n_layer=3, n_head=4, n_positions=64, vocab_size=131, bos_token_id=1,
                eos_token_id=2)
    text = dict(TINY, num_hidden_layers=2, rope_parameters=dict(
        rope_type="default", rope_theta=1e6, mrope_section=[1, 1, 2]))

    def sections():  # transformers writes into the map
        return dict(rope_parameters=dict(rope_type="default", rope_theta=1e6,
                                         mrope_section=[1, 1, 2]))

    gemma = {**TINY, "head_dim": 12, "initializer_range": 0.02}
    mixed = dict(MOE, head_dim=8, layer_types=["linear_attention", "full_attention",
                                               "linear_attention"])
    routed = dict(moe_intermediate_size=20, num_experts=6, num_experts_per_tok=2,
                  shared_expert_intermediate_size=24)
    return {
        "tiny-deepseek-v2-lite": t.DeepseekV2Config(**MLA, q_lora_rank=None, n_shared_experts=2),
        "tiny-deepseek-v2": t.DeepseekV2Config(
            **MLA, q_lora_rank=24, n_shared_experts=2, attention_bias=True, n_group=3,
            topk_group=2, topk_method="group_limited_greedy", routed_scaling_factor=16.0),
        "tiny-deepseek-v3": t.DeepseekV3Config(
            **MLA, q_lora_rank=24, n_shared_experts=1, n_group=3, topk_group=2),
        "tiny-deepseek-v3-biased": t.DeepseekV3Config(
            **MLA, q_lora_rank=24, n_shared_experts=1, n_group=2, topk_group=1,
            attention_bias=True),
        "tiny-gpt2": t.GPT2Config(**gpt2),
        "tiny-gpt2-untied": t.GPT2Config(**gpt2, n_inner=44, tie_word_embeddings=False),
        "tiny-gpt-oss": t.GptOssConfig(
            **{**MOE, "intermediate_size": 20}, head_dim=8, num_local_experts=6,
            num_experts_per_tok=2),
        "tiny-nemotron": t.NemotronConfig(**MOE, head_dim=8),
        "tiny-nemotron-biased": t.NemotronConfig(
            **MOE, head_dim=8, attention_bias=True, mlp_bias=True, tie_word_embeddings=True),
        "tiny-qwen2.5-vl": t.Qwen2_5_VLConfig(text_config=text, vision_config=VISION, **VISION_TOKENS),
        "tiny-gemma2": t.Gemma2Config(**gemma, sliding_window=9),
        "tiny-gemma3": t.Gemma3TextConfig(
            **{**gemma, "num_hidden_layers": 7}, sliding_window=9, tie_word_embeddings=False),
        "tiny-phi3": t.Phi3Config(**MOE, pad_token_id=3),
        "tiny-phi3-longrope": t.Phi3Config(
            **{**MOE, "num_key_value_heads": 4}, pad_token_id=3, sliding_window=9,
            original_max_position_embeddings=16, tie_word_embeddings=True, rope_parameters=dict(
                rope_type="longrope", rope_theta=1e4, short_factor=[1.0] * 3,
                long_factor=[2.0] * 3, partial_rotary_factor=0.75)),
        "tiny-olmo2": t.Olmo2Config(**MOE, pad_token_id=3),
        "tiny-olmo2-biased": t.Olmo2Config(**MOE, pad_token_id=3, attention_bias=True),
        "tiny-glm4-moe": t.Glm4MoeConfig(
            **MOE, head_dim=12, moe_intermediate_size=20, n_routed_experts=6,
            num_experts_per_tok=2, attention_bias=True, use_qk_norm=True),
        "tiny-glm4-moe-unbiased": t.Glm4MoeConfig(
            **MOE, head_dim=8, moe_intermediate_size=20, n_routed_experts=6, n_group=2,
            topk_group=1, num_experts_per_tok=2, n_shared_experts=2, first_k_dense_replace=2),
        "tiny-seed-oss": t.SeedOssConfig(**MOE, head_dim=12),
        "tiny-seed-oss-biased": t.SeedOssConfig(
            **MOE, head_dim=8, attention_bias=False, attention_out_bias=True, mlp_bias=True),
        "tiny-qwen3-next": t.Qwen3NextConfig(
            **mixed, **routed, **LINEAR, mlp_only_layers=[1], attention_bias=True),
        "tiny-qwen3.5": t.Qwen3_5Config(
            text_config={**mixed, **LINEAR, **sections()}, vision_config=POSITIONED,
            **VISION_TOKENS),
        "tiny-qwen3.5-moe": t.Qwen3_5MoeConfig(
            text_config={**mixed, **routed, **LINEAR, **sections()}, vision_config=POSITIONED,
            **VISION_TOKENS),
        "tiny-qwen3-vl": t.Qwen3VLConfig(
            text_config=dict(MOE, head_dim=8, **sections()),
            vision_config=dict(POSITIONED, deepstack_visual_indexes=[0, 1]), **VISION_TOKENS),
        "tiny-minimax-m2": t.MiniMaxM2Config(
            **{**MOE, "intermediate_size": 20}, head_dim=12, num_local_experts=6,
            num_experts_per_tok=2),
        "tiny-hy-v3": t.HYV3Config(
            **MOE, head_dim=12, moe_intermediate_size=20, num_experts=6, num_experts_per_tok=2,
            num_shared_experts=2),
        "tiny-hy-v3-biased": t.HYV3Config(
            **MOE, head_dim=8, moe_intermediate_size=20, num_experts=6, num_experts_per_tok=2,
            attention_bias=True, mlp_layer_types=["sparse", "dense", "sparse"]),
        "tiny-nemotron-h": t.NemotronHConfig(
            **BLOCKS, head_dim=12, num_experts_per_tok=2, n_routed_experts=6, n_group=3,
            topk_group=2, moe_intermediate_size=20, moe_shared_expert_intermediate_size=24,
            layers_block_type=["linear_attention", "moe", "full_attention", "mlp", "moe"]),
        "tiny-nemotron-h-latent": t.NemotronHConfig(
            **BLOCKS, head_dim=12, num_experts_per_tok=2, n_routed_experts=6, moe_latent_size=14,
            moe_intermediate_size=20, moe_shared_expert_intermediate_size=24,
            layers_block_type=["moe", "full_attention"]),
        "tiny-nemotron-h-dense": t.NemotronHConfig(
            **{**BLOCKS, "conv_kernel": 3}, head_dim=8, use_conv_bias=False,
            hybrid_override_pattern="M-*-M"),
        "tiny-glm4v": t.Glm4vConfig(
            text_config=dict(MOE, rope_parameters=dict(
                rope_type="default", rope_theta=1e4, mrope_section=[1, 1, 2],
                partial_rotary_factor=0.5)),
            vision_config=dict(VISION, image_size=28, patch_size=7), **VISION_TOKENS_GLM),
        "tiny-glm4v-moe": t.Glm4vMoeConfig(
            text_config=dict(
                MOE, moe_intermediate_size=20, n_routed_experts=6, num_experts_per_tok=2,
                rope_parameters=dict(rope_type="default", rope_theta=1e4, mrope_section=[1, 1, 2],
                                     partial_rotary_factor=0.5)),
            vision_config=dict(VISION, image_size=28, patch_size=7), **VISION_TOKENS_GLM),
        "tiny-llama4": t.Llama4Config(
            text_config=dict(
                {**MOE, "num_hidden_layers": 5}, head_dim=12, intermediate_size_mlp=28,
                num_local_experts=6, interleave_moe_layer_step=2, attention_chunk_size=8),
            vision_config=LLAMA4_TOWER),
        "tiny-llama4-dense": t.Llama4Config(
            text_config=dict(
                MOE, head_dim=8, intermediate_size_mlp=28, num_local_experts=6, moe_layers=[2],
                use_qk_norm=False, attention_bias=True, no_rope_layers=[0, 1, 1]),
            vision_config=LLAMA4_TOWER),
        "tiny-deepseek-v32": t.DeepseekV32Config(
            **MLA, q_lora_rank=24, n_group=2, topk_group=1, index_topk=8, index_head_dim=12,
            index_n_heads=2, attention_bias=True),
        "tiny-glm-moe-dsa": t.GlmMoeDsaConfig(
            **MLA, q_lora_rank=24, index_topk=8, index_head_dim=12, index_n_heads=2),
        "tiny-glm-moe-dsa-shared": t.GlmMoeDsaConfig(
            **{**MLA, "num_hidden_layers": 4}, q_lora_rank=24, index_topk=8, index_head_dim=12,
            index_n_heads=2, index_topk_freq=2),
        "tiny-glm4-moe-lite": t.Glm4MoeLiteConfig(
            **MLA, q_lora_rank=24, n_shared_experts=2, n_group=2, topk_group=1, attention_bias=True),
        "tiny-olmo3": t.Olmo3Config(
            **{**MOE, "num_hidden_layers": 5}, pad_token_id=3, sliding_window=9,
            rope_scaling=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16)),
        "tiny-deepseek-v4": t.DeepseekV4Config(
            **ENTRIES, layer_types=["sliding_attention", "compressed_sparse_attention",
                                    "heavily_compressed_attention", "compressed_sparse_attention"],
            compress_rates=dict(compressed_sparse_attention=2, heavily_compressed_attention=8),
            mlp_layer_types=["hash_moe", "moe", "hash_moe", "moe"]),
        "tiny-deepseek-v4-default": t.DeepseekV4Config(
            **ENTRIES, hc_mult=2, num_hash_layers=1, rope_scaling=dict(
                rope_type="yarn", factor=4.0, original_max_position_embeddings=16)),
        "tiny-minimax": t.MiniMaxConfig(
            **{**MOE, "intermediate_size": 20}, head_dim=12, num_local_experts=6,
            num_experts_per_tok=2, block_size=8,
            layer_types=["linear_attention", "full_attention", "linear_attention"]),
        "tiny-gemma3-vision": t.Gemma3Config(
            text_config={**gemma, "num_hidden_layers": 7, "sliding_window": 9},
            vision_config=dict(SINGLE_TOWER, intermediate_size=20, vision_use_head=False),
            mm_tokens_per_image=4),
        "tiny-glm4": t.Glm4Config(**MOE, head_dim=12, pad_token_id=3),
        "tiny-smollm3": t.SmolLM3Config(**MOE, pad_token_id=3),
        "tiny-smollm3-window": t.SmolLM3Config(
            **{**MOE, "num_hidden_layers": 4}, pad_token_id=3, use_sliding_window=True,
            sliding_window=9, tie_word_embeddings=False, attention_bias=True, mlp_bias=True),
        "tiny-ministral": t.MinistralConfig(
            **MOE, head_dim=12, sliding_window=9,
            layer_types=["full_attention", "sliding_attention", "sliding_attention"]),
        "tiny-ministral3": t.Ministral3Config(**MOE, head_dim=12),
        "tiny-olmoe": t.OlmoeConfig(
            **{**MOE, "intermediate_size": 20}, num_experts=6, num_experts_per_tok=2),
        "tiny-ernie4.5": t.Ernie4_5Config(**MOE, head_dim=12),
        "tiny-ernie4.5-moe": t.Ernie4_5_MoeConfig(
            **{**MOE, "num_hidden_layers": 5}, moe_intermediate_size=20, moe_num_experts=6,
            moe_k=2, moe_layer_end_index=3, moe_layer_interval=2),
        "tiny-hunyuan-v1-dense": t.HunYuanDenseV1Config(**MOE, head_dim=12),
        "tiny-hunyuan-v1-moe": t.HunYuanMoEV1Config(
            **{**MOE, "intermediate_size": 20}, head_dim=12, num_experts=6, moe_topk=2),
        "tiny-qwen3-vl-moe": t.Qwen3VLMoeConfig(
            text_config=dict(QWEN_MOE, head_dim=12, mlp_only_layers=[1], **sections()),
            vision_config=dict(POSITIONED, deepstack_visual_indexes=[1]), **VISION_TOKENS),
    }


def model_of(config):
    """The model as its checkpoint is saved: with its head, and its vision tower where it has one."""
    if hasattr(config, "vision_config"):
        return transformers.AutoModelForImageTextToText.from_config(config)
    return transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n")


def saved_parameters(model):
    """Names and shapes that save_pretrained writes: one name per storage that is shared."""
    tied = set(getattr(model, "_tied_weights_keys", None) or [])
    if not model.config.tie_word_embeddings:
        tied = set()
    kept = {name: tensor for name, tensor in model.state_dict().items()
            if name not in tied and not name.endswith(DECAYS)}
    saved = revert_weight_conversion(model, kept)
    return {name: list(tensor.shape) for name, tensor in saved.items()}


def runs(numbers):
    """Ascending numbers as "a" and "[a-b]"."""
    texts, start = [], None
    for i, number in enumerate(numbers):
        start = number if start is None else start
        if i + 1 == len(numbers) or numbers[i + 1] != number + 1:
            texts.append(str(start) if start == number else f"[{start}-{number}]")
            start = None
    return texts


def compact(parameters):
    """Entries that differ in one number alone become one, the last number of a name first."""
    for position in (1, 0):
        families = {}
        for name, shape in parameters.items():
            parts = re.split(r"(?<=\.)(\d+)(?=\.)", name)
            at = 2 * position + 1
            number = int(parts[at]) if at < len(parts) else None
            key = tuple(parts[:at]) + tuple(parts[at + 1:]), tuple(shape)
            families.setdefault(key, []).append(number)
        parameters = {}
        for (parts, shape), numbers in families.items():
            at = 2 * position + 1
            for text in [""] if numbers[0] is None else runs(sorted(numbers)):
                parameters["".join(parts[:at]) + text + "".join(parts[at:])] = list(shape)
    return parameters


def expand(parameters):
    """The inverse of compact, for its check."""
    whole = {}
    for name, shape in parameters.items():
        names = [name]
        while "[" in names[0]:
            head, low, high, tail = re.fullmatch(r"(.*?)\[(\d+)-(\d+)\](.*)", names[0]).groups()
            texts = [str(i) for i in range(int(low), int(high) + 1)]
            names = [n.replace(f"[{low}-{high}]", text, 1) for text in texts for n in names]
        whole.update((n, shape) for n in names)
    return whole


def randomise(model):
    """Every tensor away from its initial value, biases and norms too, so that none goes unread."""
    generator = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for name, tensor in sorted(model.named_parameters()):
            noise = torch.randn(tensor.shape, generator=generator)
            tensor.copy_(1 + 0.2 * noise if "norm" in name else 0.2 * noise)


def gradients_of(model, loss):
    """By checkpoint name. A tied embedding's is that of both its uses."""
    model.zero_grad(set_to_none=False)
    loss.backward(retain_graph=True)
    tied = set(getattr(model, "_tied_weights_keys", None) or [])
    names = {name for name, _ in model.named_parameters()} - (
        tied if model.config.tie_word_embeddings else set())
    return revert_weight_conversion(
        model, {name: p.grad.clone() for name, p in model.named_parameters() if name in names})


def z_loss(logits):
    """Megatron-LM core/transformer/moe/moe_utils.py, z_loss_func with z_loss_coeff 1."""
    return torch.mean(torch.square(torch.logsumexp(logits, dim=-1)))


def write_gradients(model, ids, folder):
    """loss: sum over tokens i of cos(i + 1) log p(7 id + 3 mod vocabulary), in the batch's order.
    balance: transformers' load-balancing loss alone; its gradients of routers and embedding.
    z: the sum over layers of their routers' z losses; its gradients of the same."""
    z_losses = []
    routers = [m for name, m in model.named_modules() if name.endswith("mlp.gate")]
    hooks = [router.register_forward_hook(lambda router, args, _: z_losses.append(
        z_loss(F.linear(args[0].flatten(0, -2), router.weight)))) for router in routers]
    out = model(ids, use_cache=False, output_router_logits=True)
    for hook in hooks:
        hook.remove()
    assert len(z_losses) == len(routers) > 0
    scores = out.logits.log_softmax(-1).flatten(0, 1)
    targets = ((ids * 7 + 3) % model.config.vocab_size).flatten()
    slope = torch.arange(1, targets.numel() + 1).float().cos()
    loss = (slope * scores[torch.arange(targets.numel()), targets]).sum()
    alone = {"balance": out.aux_loss, "z": sum(z_losses)}
    tensors = {"loss": loss.detach().reshape(1)}
    tensors.update(gradients_of(model, loss))
    for what, value in alone.items():
        tensors[what] = value.detach().reshape(1)
        for name, gradient in gradients_of(model, value).items():
            if name.endswith(("mlp.gate.weight", "moe.gate.weight", "embed_tokens.weight")):
                tensors[f"{what}/{name}"] = gradient
    save_file({n: t.contiguous() for n, t in tensors.items()}, folder / "gradients.safetensors")


def scored(model, ids):
    """Log-probs of 7 id + 3 mod vocabulary at every token, and write_gradients' loss of them."""
    scores = model(ids, use_cache=False).logits.log_softmax(-1).flatten(0, 1)
    targets = ((ids * 7 + 3) % model.config.vocab_size).flatten()
    log_probs = scores[torch.arange(targets.numel()), targets]
    return log_probs, (torch.arange(1, targets.numel() + 1).float().cos() * log_probs).sum()


def write_replay(model, ids, folder):
    """own: the experts that routers choose, [layers with experts, tokens, k]. chosen: drawn ones,
    which replace torch.topk's in transformers' routers; log_probs, loss and gradients (of routers,
    embedding and each layer's first expert) are of the model with these."""
    layers = sum(name.endswith("mlp.gate") for name, _ in model.named_modules())
    experts = getattr(model.config, "num_experts", None) or model.config.num_local_experts
    k, own, topk = model.config.num_experts_per_tok, [], torch.topk
    draws = torch.rand((layers, ids.numel(), experts),
                       generator=torch.Generator().manual_seed(SEED + 2))
    chosen = draws.argsort(-1)[..., :k].contiguous()
    forced = iter(chosen)

    def noted(probabilities, count, dim):
        values, indices = topk(probabilities, count, dim=dim)
        own.append(indices)
        return values, indices

    def replayed(probabilities, count, dim):
        indices = next(forced)
        return probabilities.gather(dim, indices), indices

    with torch.no_grad(), unittest.mock.patch.object(torch, "topk", noted):
        scored(model, ids)
    with unittest.mock.patch.object(torch, "topk", replayed):
        log_probs, loss = scored(model, ids)
    assert len(own) == layers and next(forced, None) is None
    tensors = {"own": torch.stack(own), "chosen": chosen, "log_probs": log_probs.detach(),
               "loss": loss.detach().reshape(1)}
    for name, gradient in gradients_of(model, loss).items():
        if name.endswith(("gate.weight", "embed_tokens.weight")) or ".experts.0." in name:
            tensors[name] = gradient
    save_file({n: t.contiguous() for n, t in tensors.items()}, folder / "replay.safetensors")


def write_tiny(name, config, folder):
    config.dtype = torch.float32
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    randomise(model)
    model.eval()
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    generator = torch.Generator().manual_seed(SEED + 1)
    ids = torch.randint(0, config.vocab_size, (SEQUENCES, TOKENS), generator=generator)
    with torch.no_grad():
        logits = model(ids, use_cache=False).logits
    write_json(folder / "input_ids.json", ids.tolist())
    save_file({"logits": logits.contiguous()}, folder / "logits.safetensors")
    if hasattr(config, "router_aux_loss_coef"):
        write_gradients(model, ids, folder)
        write_replay(model, ids, folder)
    stored = saved_parameters(model)
    with safe_open(folder / "model.safetensors", "pt") as file:
        assert set(file.keys()) == set(stored), f"{name}: saved names differ"
        if hasattr(config, "router_aux_loss_coef"):  # else in the order of the model's modules
            stored = {key: stored[key] for key in file.keys()}
    write_json(folder / "parameters.json", stored)


def write_planned(name, config, folder):
    config.dtype = torch.float32
    config.architectures = None
    model = model_of(config)
    with tempfile.TemporaryDirectory() as scratch:
        model.save_pretrained(scratch)
        shutil.copy(pathlib.Path(scratch) / "config.json", folder / "config.json")
        with safe_open(pathlib.Path(scratch) / "model.safetensors", "pt") as file:
            stored = {key: file.get_slice(key).get_shape() for key in file.keys()
                      if not key.endswith(DECAYS)}
    assert stored == saved_parameters(model), f"{name}: saved names differ"
    write_json(folder / "parameters.json", stored)


def write_preset(preset, folder):
    stated = json.loads((preset / "config.json").read_text())
    if stated["model_type"] == "kimi_k2":  # DeepSeek-V3's classes (its card)
        del stated["model_type"]
        config = transformers.DeepseekV3Config(**stated)
    elif stated["model_type"] == "minimax_m1":  # MiniMax's, which states its layers by numbers
        del stated["model_type"]
        kinds = ["linear_attention", "full_attention"]
        config = transformers.MiniMaxConfig(
            **stated, layer_types=[kinds[i] for i in stated["attn_type_list"]])
    elif stated["model_type"] == "mimo":  # Qwen2's classes (modeling_mimo.py of its repository)
        del stated["model_type"]
        config = transformers.Qwen2Config(**stated)
    else:
        config = transformers.AutoConfig.from_pretrained(preset)
    with torch.device("meta"):
        model = model_of(config)
    shutil.copy(preset / "config.json", folder / "config.json")
    stored = saved_parameters(model)
    small = compact(stored)
    assert expand(small) == stored, f"{preset.name}: compact names differ"
    (folder / "parameters.json").write_text(
        "{\n" + ",\n".join(f' {json.dumps(n)}: {json.dumps(s)}' for n, s in small.items()) + "\n}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", help="write only these folders")
    chosen = parser.parse_args().only
    writers = {name: (write_tiny, (name, config)) for name, config in tiny_configs().items()}
    for name, config in planned_configs().items():
        writers[name] = write_planned, (name, config)
    for preset in sorted((ROOT / "configs" / "models").iterdir()):
        writers[preset.name] = write_preset, (preset,)
    for name, (write, arguments) in writers.items():
        if chosen and name not in chosen:
            continue
        folder = OUT / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write(*arguments, folder)
        print(f"{folder.relative_to(ROOT)}: {sum(f.stat().st_size for f in folder.iterdir())} bytes")


if __name__ == "__main__":
    main()
