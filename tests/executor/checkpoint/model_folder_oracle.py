"""Oracle of model_folder_test.cc.

save DIR            a tiny random Qwen2, saved by transformers in several shards, and every tensor
                    beside it as raw bytes: DIR/model, DIR/raw/<name>
compare DIR OTHER   loads both with AutoModelForCausalLM; exit status 1 unless they are equal
"""
import os
import sys

import torch
from transformers import AutoModelForCausalLM, Qwen2Config, Qwen2ForCausalLM


def save(folder):
    torch.manual_seed(0)
    model = Qwen2ForCausalLM(Qwen2Config(
        vocab_size=101, hidden_size=32, intermediate_size=56, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
        tie_word_embeddings=False)).to(torch.bfloat16)
    model.save_pretrained(folder + "/model", max_shard_size="20KB")
    os.makedirs(folder + "/raw")
    for name, tensor in model.state_dict().items():
        with open(f"{folder}/raw/{name}", "wb") as out:
            out.write(tensor.contiguous().view(torch.uint8).numpy().tobytes())


def compare(folder, other):
    a = AutoModelForCausalLM.from_pretrained(folder, dtype="auto")
    b = AutoModelForCausalLM.from_pretrained(other, dtype="auto")
    x, y = a.state_dict(), b.state_dict()
    assert x.keys() == y.keys(), x.keys() ^ y.keys()
    for name in x:
        assert x[name].dtype == y[name].dtype and torch.equal(x[name], y[name]), name
    ids = torch.tensor([[1, 5, 100, 7]])
    assert torch.equal(a(ids).logits, b(ids).logits)


if sys.argv[1] == "save":
    save(sys.argv[2])
else:
    compare(sys.argv[2], sys.argv[3])
