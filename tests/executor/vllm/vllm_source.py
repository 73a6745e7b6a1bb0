"""vLLM's own weight loaders, taken out of its source by their text and run on the CPU.

The modules import CUDA extensions; the methods do not need them. `folder` is vLLM's package folder;
by default TESSERA_VLLM_SOURCE, or an installed vLLM's.
"""

import ast
import importlib.util
import os
import types

import torch


def folder_of_vllm():
    named = os.environ.get("TESSERA_VLLM_SOURCE")
    if named:
        return named
    spec = importlib.util.find_spec("vllm")
    return os.path.dirname(spec.origin) if spec and spec.origin else None


def _methods(path, class_name, names):
    """The methods of a class as functions, with the few names that they look up."""
    tree = ast.parse(open(path).read())
    (body,) = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == class_name]
    scope = {
        "torch": torch,
        "Parameter": torch.nn.Parameter,
        "BlockQuantScaleParameter": type("BlockQuantScaleParameter", (), {}),
        "BasevLLMParameter": type("BasevLLMParameter", (), {}),
    }
    found = []
    for node in body.body:
        if isinstance(node, ast.FunctionDef) and node.name in names:
            node.decorator_list, node.returns = [], None
            for argument in node.args.args:
                argument.annotation = None
            module = ast.Module(body=[node], type_ignores=[])
            exec(compile(module, path, "exec"), scope)  # noqa: S102: vLLM's own text
            found.append(scope[node.name])
    assert len(found) == len(names), (class_name, names)
    return found


class Loaders:
    """load(model, name, loaded) by vLLM's text, for a model of vllm_layout."""

    def __init__(self, folder):
        linear = folder + "/model_executor/layers/linear.py"
        vocab = folder + "/model_executor/layers/vocab_parallel_embedding.py"
        self.qkv = _methods(linear, "QKVParallelLinear", ["validate_shard_id", "weight_loader"])
        self.merged = _methods(
            linear, "MergedColumnParallelLinear", ["validate_shard_id", "weight_loader"]
        )
        (self.row,) = _methods(linear, "RowParallelLinear", ["weight_loader"])
        (self.vocab,) = _methods(vocab, "VocabParallelEmbedding", ["weight_loader"])

    def load(self, model, name, loaded):
        shape, tp, rank = model.shape, model.tp, model.rank
        for part in "qkv":
            if f".{part}_proj." in name:
                parameter = model.table[name.replace(f".{part}_proj.", ".qkv_proj.")]
                parameter.output_dim = 0
                layer = types.SimpleNamespace(
                    validate_shard_id=lambda _: None, num_heads=model.q_heads,
                    num_kv_heads=model.kv_heads, head_size=shape.head_dim,
                    v_head_size=shape.head_dim, num_kv_head_replicas=model.replicas, tp_rank=rank)
                return self.qkv[1](layer, parameter, loaded, part)
        for place, part in enumerate(("gate", "up")):
            if f".{part}_proj." in name:
                parameter = model.table[name.replace(f".{part}_proj.", ".gate_up_proj.")]
                parameter.output_dim = 0
                layer = types.SimpleNamespace(
                    validate_shard_id=lambda _: None, output_sizes=[shape.ffn, shape.ffn],
                    tp_size=tp, tp_rank=rank)
                return self.merged[1](layer, parameter, loaded, place)
        parameter = model.table[name]
        if name in ("model.embed_tokens.weight", "lm_head.weight"):
            parameter.output_dim = 0
            first, last = (min((rank + i) * model.vocab_rows, shape.vocab) for i in (0, 1))
            indices = types.SimpleNamespace(
                org_vocab_start_index=first, org_vocab_end_index=last)
            layer = types.SimpleNamespace(shard_indices=indices, org_vocab_size=shape.vocab)
            return self.vocab(layer, parameter, loaded)
        if name.endswith((".o_proj.weight", ".down_proj.weight")):
            parameter.input_dim = 1
            return self.row(types.SimpleNamespace(tp_rank=rank), parameter, loaded)
        return parameter.data.copy_(loaded)
