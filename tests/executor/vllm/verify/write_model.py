"""Writes a small Qwen2 as transformers saves it: write_model.py FOLDER SEED [KEY=NUMBER ...] of its config."""

import sys

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

CONFIG = dict(vocab_size=101, hidden_size=32, intermediate_size=56, num_hidden_layers=2,
              num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
              tie_word_embeddings=False)

torch.manual_seed(int(sys.argv[2]))
changes = dict(word.split("=") for word in sys.argv[3:])
model = Qwen2ForCausalLM(Qwen2Config(**(CONFIG | {key: int(value) for key, value in changes.items()})))
with torch.no_grad():
    for parameter in model.parameters():
        parameter.normal_()
model.to(torch.bfloat16).save_pretrained(sys.argv[1])
