"""A worker extension whose weights can be damaged, and which says what that changed.

Where an element of a parameter belongs in the checkpoint is found by loading each tensor's element numbers
as vLLM loads weights (vllm_layout.py), and what differs by the bits themselves: neither the placement nor
the digests that are tested are asked.
"""

import random

import torch
import vllm_layout
from tessera_vllm.worker import WeightReceiver


class FaultyReceiver(WeightReceiver):
    def tessera_fault(self, kind, seed):
        """Damages one worker; its reply has [tensor, first byte, bytes] of every tensor that changed."""
        worker, tp = self.rank, self.model.tp
        if int(seed) % tp != worker:
            return {"changed": []}
        if not hasattr(self, "faulty_sound"):
            self.faulty_prepare()
        getattr(self, kind)(random.Random(f"{kind} {seed}"))
        return {"changed": self.faulty_changed()}

    def tessera_mend(self):
        if hasattr(self, "faulty_sound"):
            for name, parameter in self.model.table.items():
                parameter.data.copy_(self.faulty_sound[name])
        return {}

    def faulty_prepare(self):
        self.faulty_sound = {n: p.data.clone() for n, p in self.model.table.items()}
        shape = self.model.shape
        whole = vllm_layout.Model(shape, 1, 0, torch.float64)
        self.faulty_names = sorted(tensors_of(shape, whole))
        sizes = tensors_of(shape, whole)
        self.faulty_sizes = sizes
        places = vllm_layout.Model(shape, self.model.tp, self.rank, torch.float64)
        owners = vllm_layout.Model(shape, self.model.tp, self.rank, torch.float64)
        for index, name in enumerate(self.faulty_names):
            count = torch.Size(sizes[name]).numel()
            numbers = torch.arange(count, dtype=torch.float64).reshape(sizes[name])
            places.load_weight(name, numbers)
            owners.load_weight(name, torch.full(sizes[name], index + 1.0, dtype=torch.float64))
        self.faulty_places = {n: p.data.long() for n, p in places.table.items()}
        self.faulty_owners = {n: p.data.long() - 1 for n, p in owners.table.items()}  # -1: padding

    def faulty_parts(self):
        """[parameter, tensor's index] of all that this worker holds."""
        return [(name, int(index)) for name, owner in self.faulty_owners.items()
                for index in owner.unique() if index >= 0]

    def faulty_mask(self, part):
        return self.faulty_owners[part[0]] == part[1]

    def faulty_changed(self):
        changed = []
        for name, parameter in self.model.table.items():
            other = bits(parameter.data) != bits(self.faulty_sound[name])
            for index in self.faulty_owners[name].unique():
                places = self.faulty_places[name][other & (self.faulty_owners[name] == index)]
                if index < 0 or len(places) == 0:
                    continue
                width = parameter.element_size()
                first, last = int(places.min()), int(places.max())
                changed.append([self.faulty_names[index], first * width, (last + 1 - first) * width])
        return changed

    def stale_tensor(self, draw):
        part = draw.choice(self.faulty_parts())
        data, mask = self.model.table[part[0]].data, self.faulty_mask(part)
        data[mask] = (data[mask].float() * 1.25 + 0.125).to(data.dtype)

    def swapped_slice(self, draw):
        parts = self.faulty_parts()
        part = draw.choice(parts)
        count = int(self.faulty_mask(part).sum())
        alike = [each for each in parts if each != part and int(self.faulty_mask(each).sum()) == count]
        if not alike:
            return self.rotate(part)
        other = draw.choice(alike)
        mine, theirs = self.model.table[part[0]].data, self.model.table[other[0]].data
        a, b = self.faulty_mask(part), self.faulty_mask(other)
        kept = mine[a].clone()
        mine[a] = theirs[b]
        theirs[b] = kept

    def missed_bias(self, draw):
        part = draw.choice([each for each in self.faulty_parts() if each[0].endswith(".bias")])
        self.model.table[part[0]].data[self.faulty_mask(part)] = float("nan")

    def flipped_bit(self, draw):
        part = draw.choice(self.faulty_parts())
        data, mask = self.model.table[part[0]].data, self.faulty_mask(part)
        at = tuple(draw.choice(mask.nonzero().tolist()))
        word = (int(bits(data)[at]) & 0xFFFF) ^ 1 << draw.randrange(16)
        data.view(torch.int16)[at] = word - (1 << 16) if word >> 15 else word

    def wrong_rank(self, draw):
        """What another worker should have; of one worker alone a part of the tensor that begins elsewhere."""
        part = draw.choice(self.faulty_parts())
        if self.model.tp == 1:
            return self.rotate(part)
        name = self.faulty_names[part[1]]
        other = vllm_layout.Model(self.model.shape, self.model.tp, (self.rank + 1) % self.model.tp,
                                  self.model.table[part[0]].dtype)
        other.load_weight(name, self.faulty_checkpoint(name))
        mask = self.faulty_mask(part)
        source = other.table[part[0]].data[mask]
        self.model.table[part[0]].data[mask] = source

    def rotate(self, part):
        data, mask = self.model.table[part[0]].data, self.faulty_mask(part)
        data[mask] = data[mask].roll(len(data[mask]) // 2)

    def faulty_checkpoint(self, name):
        import safetensors

        with safetensors.safe_open(self.faulty_file(), "pt") as file:
            return file.get_tensor(name)

    def faulty_file(self):
        return self.vllm_config.model_config.hf_config.folder + "/model.safetensors"


def bits(tensor):
    return tensor.contiguous().view(torch.int16)


def tensors_of(shape, whole):
    """Shapes of the checkpoint's tensors, by name."""
    sizes = {}
    d, h = shape.head_dim, shape.hidden
    for name, parameter in whole.table.items():
        rows = list(parameter.shape[1:])
        if ".qkv_proj." in name:
            for part, heads in (("q", shape.heads), ("k", shape.kv_heads), ("v", shape.kv_heads)):
                sizes[name.replace(".qkv_proj.", f".{part}_proj.")] = [heads * d] + rows
        elif ".gate_up_proj." in name:
            for part in ("gate", "up"):
                sizes[name.replace(".gate_up_proj.", f".{part}_proj.")] = [shape.ffn] + rows
        elif name in ("model.embed_tokens.weight", "lm_head.weight"):
            sizes[name] = [shape.vocab, h]
        else:
            sizes[name] = list(parameter.shape)
    return sizes
