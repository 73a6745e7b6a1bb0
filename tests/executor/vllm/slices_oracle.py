"""Checks tables of slices: what workers hold after a copy against vLLM's way to load a checkpoint.

usage: slices_oracle.py CASES_FILE; the blocks that it names are mapped from the process that wrote it.
"""

import json
import sys

import torch
import vllm_layout
import vllm_source
from fingerprints import bits, tensor_of
from tessera_vllm import digest, links
from tessera_vllm.slices import MappedWeights, SentWeights, Slices

MASK = (1 << 64) - 1


def mix(word):
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & MASK
    word = (word ^ word >> 27) * 0x94D049BB133111EB & MASK
    return word ^ word >> 31


def digest_by_hand(name, rows):
    """{(row, column): element bits} of what is held, one element after the other."""
    seed = 0xCBF29CE484222325
    for letter in name.encode():
        seed = (seed ^ letter) * 0x100000001B3 & MASK
    seed = mix(seed)
    return sum(mix((seed + place * 0x9E3779B97F4A7C15 + value) & MASK)
               for place, value in rows) & MASK


def check_digests(held, tensors, slices):
    """Of the smallest tensors, by plain numbers."""
    table = slices.digests()
    for name, whole in sorted(tensors.items(), key=lambda item: item[1].numel())[:3]:
        if name not in table:
            continue
        places = set()
        for one in slices.all:
            if one.tensor == name:
                for r in range(one.rows):
                    for c in range(one.columns):
                        places.add(one.corner + r * one.pitch + c)
        values = bits(whole).reshape(-1).tolist()
        expected = digest_by_hand(name, [(p, values[p] & 0xFFFFFFFF) for p in sorted(places)])
        assert table[name] == [str(expected), len(places)], name


def check_digests_of_types():
    """Of every type, with elements of both signs, in the middle of a tensor."""
    generator = torch.Generator().manual_seed(1)
    for dtype, word in ((torch.float32, torch.int32), (torch.bfloat16, torch.int16),
                        (torch.float16, torch.int16)):
        part = torch.randn(3, 5, generator=generator).to(dtype)
        values = part.view(word).tolist()
        mask = (1 << 8 * part.element_size()) - 1
        rows = [(40 + r * 9 + c, values[r][c] & mask) for r in range(3) for c in range(5)]
        assert digest.digest_of_rows(part, "a.weight", 40, 9) == digest_by_hand("a.weight", rows)


def check(case, own):
    shape = vllm_layout.Shape(case["folder"])
    tensors = {name: tensor_of(index, size, torch.float32)
               for index, (name, size) in enumerate(case["tensors"])}
    for rank in range(case["tp"]):
        expected = vllm_layout.Model(shape, case["tp"], rank, torch.float32)
        for name, whole in tensors.items():
            expected.load_weight(name, whole)
        if own is not None:
            theirs = vllm_layout.Model(shape, case["tp"], rank, torch.float32)
            for name, whole in tensors.items():
                own.load(theirs, name, whole)
            for name, parameter in theirs.table.items():
                assert torch.equal(bits(parameter), bits(expected.table[name])), name
        held = vllm_layout.Model(shape, case["tp"], rank, torch.float32)
        slices = Slices(case["table"], rank, held.table)
        mapped = MappedWeights(slices)
        moved = mapped.bring()
        assert moved == case["bytes"][rank], (moved, case["bytes"][rank])
        for name, parameter in expected.table.items():
            assert torch.equal(bits(held.table[name]), bits(parameter)), (case["name"], rank, name)
        assert mapped.differences() == []
        check_digests(held, tensors, slices)
        check_faults(case, rank, held, slices, mapped)
        mapped.close()
    check_messages(case, shape, tensors)


class Counted(links.SocketLink):
    """Counts what it receives."""

    bytes = 0

    def receive(self, messages):
        self.bytes += sum(target.numel() * target.element_size() for _, target in messages)
        super().receive(messages)


def check_messages(case, shape, tensors):
    """The same weights as messages of the ranks, in many rounds, and no byte beside them."""
    tables, models, ways = [], [], []
    for rank in range(case["tp"]):
        models.append(vllm_layout.Model(shape, case["tp"], rank, torch.float32))
        for parameter in models[-1].table.values():
            parameter.data.fill_(float("nan"))
        tables.append(Slices(case["messages"], rank, models[-1].table))
        told = tables[-1].table["link"]
        link = Counted(dict(zip(told["senders"], told["sockets"])), rank, 60)
        ways.append((SentWeights(tables[-1], link, 60), link))
    for rank, (way, link) in enumerate(ways):
        assert way.bring() == case["bytes"][rank] == link.bytes
        way.close()
        expected = vllm_layout.Model(shape, case["tp"], rank, torch.float32)
        for name, whole in tensors.items():
            expected.load_weight(name, whole)
        for name, parameter in expected.table.items():
            assert torch.equal(bits(models[rank].table[name]), bits(parameter)), (case["name"], name)


def check_faults(case, rank, held, slices, mapped):
    """One changed bit has its name; a table that lacks or moves a slice is refused."""
    one = slices.all[-1]
    part = one.of(held.table[one.parameter].data)
    part.view(torch.int32)[(0,) * part.dim()] ^= 1
    assert mapped.differences() == [one.tensor]
    before = digest.digest_of_rows(
        one.of(held.table[one.parameter]).reshape(one.rows, one.columns), one.tensor, one.corner,
        one.pitch)
    part.view(torch.int32)[(0,) * part.dim()] ^= 1
    after = digest.digest_of_rows(
        one.of(held.table[one.parameter]).reshape(one.rows, one.columns), one.tensor, one.corner,
        one.pitch)
    assert before != after
    for break_it in ("missing", "moved", "named"):
        table = json.loads(case["table"])
        entries = table["workers"][rank]["slices"]
        if break_it == "missing":
            entries.pop()
        elif break_it == "moved":
            entries[-1][2] += 1 << 20
        else:
            entries[-1][0] = "model.no_such.weight"
        try:
            Slices(json.dumps(table), rank, held.table)
        except ValueError:
            continue
        raise AssertionError(f"a table with a {break_it} slice was accepted")


def main():
    folder = vllm_source.folder_of_vllm()
    own = vllm_source.Loaders(folder) if folder else None
    check_digests_of_types()
    cases = json.load(open(sys.argv[1]))
    for case in cases:
        check(case, own)
    print(f"{len(cases)} pairs of layouts agree with {'vLLM itself' if own else 'its transcription'}")


main()
