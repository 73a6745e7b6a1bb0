#!/usr/bin/env python3
"""Writes tests/fixtures/models/NAME from transformers, the oracle of names, shapes and logits.

Every folder holds config.json and parameters.json, {checkpoint name: shape} as save_pretrained
would write it (a tied lm_head is absent). Presets of configs/models are built on the meta device;
tiny random models in fp32 also get model.safetensors, input_ids.json and logits.safetensors.
Written with transformers 5.17.0 and torch 2.11.0.

    python scripts/make_fixtures.py [--only NAME ...]
"""

import argparse
import json
import pathlib
import shutil

import torch
import transformers
from safetensors.torch import save_file

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "tests" / "fixtures" / "models"
SEED = 20260101
SEQUENCES, TOKENS = 2, 24

TINY = dict(
    hidden_size=32, intermediate_size=44, num_hidden_layers=4, num_attention_heads=4,
    num_key_value_heads=2, vocab_size=131, max_position_embeddings=64, bos_token_id=1,
    eos_token_id=2, initializer_range=0.2,
)


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
    }


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n")


def saved_parameters(model):
    """Names and shapes that save_pretrained writes: one name per storage that is shared."""
    tied = set(getattr(model, "_tied_weights_keys", None) or [])
    if not model.config.tie_word_embeddings:
        tied = set()
    return {name: list(tensor.shape) for name, tensor in model.state_dict().items()
            if name not in tied}


def randomise(model):
    """Every tensor away from its initial value, biases and norms too, so that none goes unread."""
    generator = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for name, tensor in sorted(model.named_parameters()):
            noise = torch.randn(tensor.shape, generator=generator)
            tensor.copy_(1 + 0.2 * noise if "norm" in name else 0.2 * noise)


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
    stored = saved_parameters(model)
    from safetensors import safe_open
    with safe_open(folder / "model.safetensors", "pt") as file:
        assert set(file.keys()) == set(stored), f"{name}: saved names differ"
    write_json(folder / "parameters.json", stored)


def write_preset(preset, folder):
    config = transformers.AutoConfig.from_pretrained(preset)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    shutil.copy(preset / "config.json", folder / "config.json")
    write_json(folder / "parameters.json", saved_parameters(model))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", help="write only these folders")
    chosen = parser.parse_args().only
    presets = {p.name: p for p in sorted((ROOT / "configs" / "models").iterdir())}
    for name, config in {**tiny_configs(), **presets}.items():
        if chosen and name not in chosen:
            continue
        folder = OUT / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (write_preset if name in presets else write_tiny)(
            *((config, folder) if name in presets else (name, config, folder)))
        print(f"{folder.relative_to(ROOT)}: {sum(f.stat().st_size for f in folder.iterdir())} bytes")


if __name__ == "__main__":
    main()
