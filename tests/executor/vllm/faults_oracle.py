"""Injects faults into the weights that workers hold, and asks for digests of every block each time.

usage: faults_oracle.py CASES_FILE COUNT. A case has a folder, a degree, the blocks of each worker as
rectangles of its parameters, the digests that the trainer expects of them, and the tensors. The blocks
that differ must be exactly those in which an element has other bits, which is counted without digests.
"""

import json
import random
import sys

import torch
import vllm_layout
from fingerprints import bits, tensor_of
from tessera_vllm import digest


class Worker:
    def __init__(self, case, rank, tensors, stale):
        shape = vllm_layout.Shape(case["folder"])
        self.rectangles, self.expected = case["rectangles"][rank], case["digests"][rank]
        self.table = vllm_layout.Model(shape, case["tp"], rank, torch.float32).table
        self.sound = loaded(case, rank, tensors)
        self.stale = loaded(case, rank, stale)
        self.next = loaded(case, (rank + 1) % case["tp"], tensors)  # of another worker
        self.restore()

    def restore(self):
        for name, parameter in self.table.items():
            parameter.data.copy_(self.sound[name])

    def told(self):
        """Blocks that the digests call wrong."""
        found = digest.digests_of(self.table, self.rectangles)
        return [i for i, (mine, theirs) in enumerate(zip(found, self.expected)) if mine != theirs]

    def changed(self):
        """Blocks in which an element has other bits."""
        blocks = []
        for i, (name, row, last_row, column, last_column, *_) in enumerate(self.rectangles):
            held, sound = self.table[name].data, self.sound[name]
            if held.dim() == 1:
                same = torch.equal(bits(held[row:last_row]), bits(sound[row:last_row]))
            else:
                same = torch.equal(bits(held[row:last_row, column:last_column]),
                                   bits(sound[row:last_row, column:last_column]))
            if not same:
                blocks.append(i)
        return blocks

    def part(self, entry):
        return matrix(self.table[entry[0]].data)[entry[1]:entry[2], entry[3]:entry[4]]


def matrix(parameter):
    return parameter.reshape(parameter.shape[0], -1)


def loaded(case, rank, tensors):
    model = vllm_layout.Model(vllm_layout.Shape(case["folder"]), case["tp"], rank, torch.float32)
    for name, whole in tensors.items():
        model.load_weight(name, whole)
    return {name: parameter.data for name, parameter in model.table.items()}


def stale_tensor(worker, draw):
    entry = draw.choice(worker.rectangles)
    worker.table[entry[0]].data.copy_(worker.stale[entry[0]])


def swapped_slices(worker, draw):
    entry = draw.choice(worker.rectangles)
    alike = [other for other in worker.rectangles if other is not entry
             and worker.part(other).shape == worker.part(entry).shape]
    if not alike:
        return flipped_bit(worker, draw)
    other = draw.choice(alike)
    mine, theirs = worker.part(entry).clone(), worker.part(other).clone()
    worker.part(entry).copy_(theirs)
    worker.part(other).copy_(mine)


def missed_bias(worker, draw):
    vectors = [entry for entry in worker.rectangles if worker.table[entry[0]].dim() == 1]
    worker.part(draw.choice(vectors)).fill_(float("nan"))


def flipped_bit(worker, draw):
    part = worker.part(draw.choice(worker.rectangles)).view(torch.int32)
    place = (draw.randrange(part.shape[0]), draw.randrange(part.shape[1]))
    word = (int(part[place]) & 0xFFFFFFFF) ^ 1 << draw.randrange(32)
    part[place] = word - (1 << 32) if word >> 31 else word


def wrong_rank(worker, draw):
    entry = draw.choice(worker.rectangles)
    worker.table[entry[0]].data.copy_(worker.next[entry[0]])


FAULTS = (stale_tensor, swapped_slices, missed_bias, flipped_bit, wrong_rank)


def main():
    cases, count = json.load(open(sys.argv[1])), int(sys.argv[2])
    torch.set_num_threads(1)
    workers = []
    for case in cases:
        sets = []
        for of in (0, 50):  # the weights of another step
            sets.append({name: tensor_of(index + of, size, torch.float32)
                         for index, (name, size) in enumerate(case["tensors"])})
        workers += [Worker(case, rank, *sets) for rank in range(case["tp"])]
    for worker in workers:
        assert worker.told() == [], "digests differ where nothing is wrong"
    draw, without = random.Random(17), 0
    for index in range(count):
        worker, fault = draw.choice(workers), FAULTS[index % len(FAULTS)]
        fault(worker, draw)
        changed = worker.changed()
        assert worker.told() == changed, (index, fault.__name__, worker.told(), changed)
        without += not changed  # a replica has the same slice
        worker.restore()
    assert without < count / 10, without
    print(f"{count} faults on {len(workers)} workers, {count - without} of which changed a bit, named")


main()
