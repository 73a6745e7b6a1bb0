"""Models in vLLM's layout without vLLM: its parameters, its way to load a checkpoint, a forward pass.

Shapes and loading are transcribed from vLLM 0.24.0, model_executor/layers/linear.py
(QKVParallelLinear, MergedColumnParallelLinear and RowParallelLinear with their weight_loader) and
layers/vocab_parallel_embedding.py (pad_vocab_size, VocabParallelEmbedding); names and fusing from
models/qwen2.py, qwen3.py and llama.py. Dense decoders of those families only.
"""

import json

import torch

PADDING = 64  # DEFAULT_VOCAB_PADDING_SIZE


def divide(number, by):
    assert number % by == 0, f"{number} is not divisible by {by}"
    return number // by


class Shape:
    def __init__(self, folder):
        config = json.load(open(folder + "/config.json"))
        self.layers = config["num_hidden_layers"]
        self.hidden, self.ffn = config["hidden_size"], config["intermediate_size"]
        self.heads = config["num_attention_heads"]
        self.kv_heads = config.get("num_key_value_heads") or self.heads
        self.head_dim = config.get("head_dim") or self.hidden // self.heads
        self.vocab, self.epsilon = config["vocab_size"], config["rms_norm_eps"]
        rope = config.get("rope_parameters") or config
        self.theta = rope.get("rope_theta", 10000.0)
        kind = config["model_type"]
        self.qkv_bias = kind == "qwen2" or config.get("attention_bias", False)
        self.output_bias = kind != "qwen2" and config.get("attention_bias", False)
        self.qk_norm = kind == "qwen3"
        self.tied = config.get("tie_word_embeddings", False)


class Model(torch.nn.Module):
    """The parameters of one tensor-parallel worker, as vLLM names and shapes them."""

    def __init__(self, shape, tp, rank, dtype):
        super().__init__()
        self.shape, self.tp, self.rank = shape, tp, rank
        self.q_heads = divide(shape.heads, tp)
        # QKVParallelLinear.__init__
        if tp >= shape.kv_heads:
            self.kv_heads, self.replicas = 1, divide(tp, shape.kv_heads)
        else:
            self.kv_heads, self.replicas = divide(shape.kv_heads, tp), 1
        self.table = {}
        d, h = shape.head_dim, shape.hidden
        qkv = (self.q_heads + 2 * self.kv_heads) * d
        padded = (shape.vocab + PADDING - 1) // PADDING * PADDING
        self.vocab_rows = divide(padded, tp)
        add = lambda name, *size: self.table.setdefault(  # noqa: E731
            name, torch.nn.Parameter(torch.empty(*size, dtype=dtype), requires_grad=False)
        )
        add("model.embed_tokens.weight", self.vocab_rows, h)
        for index in range(shape.layers):
            layer = f"model.layers.{index}."
            add(layer + "self_attn.qkv_proj.weight", qkv, h)
            if shape.qkv_bias:
                add(layer + "self_attn.qkv_proj.bias", qkv)
            add(layer + "self_attn.o_proj.weight", h, self.q_heads * d)
            if shape.output_bias:
                add(layer + "self_attn.o_proj.bias", h)
            if shape.qk_norm:
                add(layer + "self_attn.q_norm.weight", d)
                add(layer + "self_attn.k_norm.weight", d)
            add(layer + "mlp.gate_up_proj.weight", 2 * divide(shape.ffn, tp), h)
            add(layer + "mlp.down_proj.weight", h, divide(shape.ffn, tp))
            add(layer + "input_layernorm.weight", h)
            add(layer + "post_attention_layernorm.weight", h)
        add("model.norm.weight", h)
        if not shape.tied:
            add("lm_head.weight", self.vocab_rows, h)
        for parameter in self.table.values():
            parameter.data.normal_()

    def named_parameters(self, *_, **__):
        return iter(self.table.items())

    def load_weight(self, name, loaded):
        """One tensor of a checkpoint, as the models' load_weights and weight_loaders bring it."""
        d = self.shape.head_dim
        for part, fused in (("q", "qkv"), ("k", "qkv"), ("v", "qkv")):
            if f".{part}_proj." in name:
                # QKVParallelLinear.weight_loader
                parameter = self.table[name.replace(f".{part}_proj.", f".{fused}_proj.")].data
                sizes = {"q": self.q_heads * d, "k": self.kv_heads * d, "v": self.kv_heads * d}
                offsets = {"q": 0, "k": sizes["q"], "v": sizes["q"] + sizes["k"]}
                shard = self.rank if part == "q" else self.rank // self.replicas
                size = sizes[part]
                parameter.narrow(0, offsets[part], size).copy_(
                    loaded.narrow(0, shard * size, size)
                )
                return
        for place, part in enumerate(("gate", "up")):
            if f".{part}_proj." in name:
                # MergedColumnParallelLinear.weight_loader
                parameter = self.table[name.replace(f".{part}_proj.", ".gate_up_proj.")].data
                size = divide(loaded.shape[0], self.tp)
                parameter.narrow(0, place * size, size).copy_(
                    loaded.narrow(0, self.rank * size, size)
                )
                return
        parameter = self.table[name].data
        if name in ("model.embed_tokens.weight", "lm_head.weight"):
            # VocabParallelEmbedding.weight_loader
            first = min(self.rank * self.vocab_rows, self.shape.vocab)
            last = min((self.rank + 1) * self.vocab_rows, self.shape.vocab)
            parameter[: last - first].copy_(loaded[first:last])
            parameter[last - first :].fill_(0)
        elif name.endswith((".o_proj.weight", ".down_proj.weight")):
            # RowParallelLinear.weight_loader
            size = parameter.shape[1]
            parameter.copy_(loaded.narrow(1, self.rank * size, size))
        else:
            assert parameter.shape == loaded.shape, name
            parameter.copy_(loaded)


def _norm(x, weight, epsilon):
    x = x.double()
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon) * weight.double()


def _rotated(x, theta):
    """x [batch, heads, tokens, head_dim], as vLLM's neox style."""
    half = x.shape[-1] // 2
    frequency = theta ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(x.shape[2], dtype=torch.float64)[:, None] * frequency
    cos, sin = angle.cos().double(), angle.sin().double()
    first, second = x[..., :half], x[..., half:]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


def _attention(model, layer, x):
    shape, get = model.shape, lambda name: model.table[layer + "self_attn." + name].double()
    d, q, kv = shape.head_dim, model.q_heads, model.kv_heads
    fused = x @ get("qkv_proj.weight").t()
    if shape.qkv_bias:
        fused = fused + get("qkv_proj.bias")
    heads = fused.view(*x.shape[:2], q + 2 * kv, d).transpose(1, 2)
    query, key, value = heads.split([q, kv, kv], 1)
    if shape.qk_norm:
        query = _norm(query, get("q_norm.weight"), shape.epsilon)
        key = _norm(key, get("k_norm.weight"), shape.epsilon)
    query, key = _rotated(query, shape.theta), _rotated(key, shape.theta)
    key, value = (t.repeat_interleave(q // kv, 1) for t in (key, value))
    mixed = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    return mixed.transpose(1, 2).reshape(*x.shape[:2], q * d) @ get("o_proj.weight").t()


def _mlp(model, layer, x):
    gate, up = (x @ model.table[layer + "mlp.gate_up_proj.weight"].double().t()).chunk(2, -1)
    down = model.table[layer + "mlp.down_proj.weight"].double()
    return (torch.nn.functional.silu(gate) * up) @ down.t()


def logits_of(workers, tokens):
    """Logits [batch, vocabulary] of the last token, by all workers of a tensor-parallel group; computed in
    fp64, so that they do not depend on what shares the batch."""
    shape, first = workers[0].shape, workers[0]
    x = sum(_embedded(model, tokens) for model in workers)
    for index in range(shape.layers):
        layer = f"model.layers.{index}."
        normed = _norm(x, first.table[layer + "input_layernorm.weight"], shape.epsilon)
        x = x + sum(_attention(model, layer, normed) for model in workers)
        if shape.output_bias:
            x = x + first.table[layer + "self_attn.o_proj.bias"].double()
        normed = _norm(x, first.table[layer + "post_attention_layernorm.weight"], shape.epsilon)
        x = x + sum(_mlp(model, layer, normed) for model in workers)
    last = _norm(x[:, -1], first.table["model.norm.weight"], shape.epsilon)
    head = "model.embed_tokens.weight" if shape.tied else "lm_head.weight"
    every = torch.cat([last @ model.table[head].double().t() for model in workers], -1)
    return every[:, : shape.vocab].float()


def _embedded(model, tokens):
    local = tokens - model.rank * model.vocab_rows
    mine = (local >= 0) & (local < model.vocab_rows)
    rows = model.table["model.embed_tokens.weight"].double()[local.clamp(0, model.vocab_rows - 1)]
    return rows * mine[..., None]
