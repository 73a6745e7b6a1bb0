"""The table of slices that a run sends (executor/vllm/slices.h), and how they come to their places."""

import json

import torch

from tessera_vllm import blocks, digest

_TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class Slices:
    """One worker's slices, checked against its parameters; digests what is there.

    `parameters`: the model's, by name, each once. Raises ValueError where the table and the
    parameters are not for each other: every element must have its slice, or be a zero.
    """

    def __init__(self, table, worker, parameters):
        self.table = json.loads(table)
        if self.table["version"] != 2:
            raise ValueError(f"a table of version {self.table['version']}, expected 2")
        self.type = _TYPES[self.table["dtype"]]
        self.parameters = parameters
        mine = self.table["workers"][worker]
        self.all = [_Slice(*entry) for entry in mine["slices"]]
        self.rounds = mine["rounds"]
        self._zeros = [tuple(entry) for entry in mine["zeros"]]
        self._check(parameters)
        self.device = next(iter(parameters.values())).device

    def bytes_of(self, one):
        return one.elements * self.type.itemsize

    def place(self, one):
        """Where the slice goes: a view of its parameter."""
        return one.of(self.parameters[one.parameter])

    def clear_padding(self):
        for name, first, last in self._zeros:
            self.parameters[name][first:last].zero_()

    def digests(self):
        """By tensor of the checkpoint: [digest as text, elements] of what the worker holds."""
        sums = {}
        for one in self.all:
            held = self.place(one).reshape(one.rows, one.columns)
            part = digest.digest_of_rows(held, one.tensor, one.corner, one.pitch)
            total, elements = sums.get(one.tensor, (0, 0))
            sums[one.tensor] = ((total + part) & (1 << 64) - 1, elements + one.elements)
        return {name: [str(total), elements] for name, (total, elements) in sums.items()}

    def _check(self, parameters):
        filled = dict.fromkeys(parameters, 0)
        for one in self.all:
            if one.parameter not in parameters:
                raise ValueError(f"vLLM's model has no parameter {one.parameter}")
            parameter = parameters[one.parameter]
            if parameter.dtype != self.type:
                raise ValueError(
                    f"{one.parameter} is {parameter.dtype}, the trainer's is {self.type}"
                )
            if not one.fits(parameter):
                raise ValueError(
                    f"{one.parameter} is {tuple(parameter.shape)} and has no place for {one}"
                )
            filled[one.parameter] += one.elements
        for name, first, last in self._zeros:
            if name not in parameters or last > parameters[name].shape[0]:
                raise ValueError(f"vLLM's model has no rows {first} to {last} of {name}")
            filled[name] += (last - first) * parameters[name][0].numel()
        for name, count in filled.items():
            if count != parameters[name].numel():
                raise ValueError(
                    f"{name} has {parameters[name].numel()} elements, "
                    f"of which the trainer's tensors are {count}"
                )


class MappedWeights:
    """Weights out of the training ranks' memory, which this process maps."""

    def __init__(self, slices):
        self._slices, self._blocks = slices, {}
        table = slices.table
        try:
            for rank in sorted({one.rank for one in slices.all}):
                name, size = table["blocks"][rank]
                self._blocks[rank] = blocks.map_block(name, size, table["device"])
        except Exception:
            self.close()
            raise
        largest = max((one.elements for one in slices.all if one.transposed), default=0)
        self._scratch = torch.empty(largest, dtype=slices.type, device=slices.device)

    def close(self):
        for block in self._blocks.values():
            block.close()
        self._blocks = {}

    def bring(self):
        """Every slice to its place; returns the bytes of all. The device may be at work still."""
        moved = 0
        with torch.no_grad():
            self._slices.clear_padding()
            for one in self._slices.all:
                source = self._source(one)
                target = self._slices.place(one)
                if one.transposed:  # first as it lies, then turned within this device's memory
                    lying = self._scratch[: one.elements].view(one.columns, one.rows)
                    lying.copy_(source.view(one.columns, one.rows))
                    target.copy_(lying.t())
                else:
                    target.copy_(source.view(target.shape))
                moved += source.numel() * source.element_size()
        return moved

    def differences(self):
        """Tensors of the checkpoint of which a slice is not what the trainer's memory holds now."""
        names = []
        for one in self._slices.all:
            source = self._source(one)
            held = self._slices.place(one).reshape(one.rows, one.columns)
            lying = held.t() if one.transposed else held
            bits = torch.int16 if self._slices.type.itemsize == 2 else torch.int32
            same = torch.equal(lying.contiguous().view(-1).view(bits), source.view(bits))
            if not same and one.tensor not in names:
                names.append(one.tensor)
        return names

    def _source(self, one):
        size = self._slices.bytes_of(one)
        return self._blocks[one.rank].bytes[one.offset : one.offset + size].view(self._slices.type)


class SentWeights:
    """Weights as messages of the training ranks, in the rounds and the order that the table states.

    A slice that lies in a parameter as it is sent is received there; others come into memory beside
    it and are turned, while the next round is under way.
    """

    def __init__(self, slices, link, timeout_s):
        self._slices, self._link, self._timeout_s = slices, link, timeout_s
        self._rounds, first = [], 0
        for last in slices.rounds:
            # Both ends send and receive a round's largest messages first (nccl_communicator.cc).
            self._rounds.append(sorted(slices.all[first:last], key=lambda one: -one.elements))
            first = last
        self._beside = max(
            (sum(one.elements for one in each if not self._direct(one)) for each in self._rounds),
            default=0,
        )

    def close(self):
        self._link.close()

    def bring(self):
        """As MappedWeights.bring; all is there when it returns."""
        moved = 0
        halves = [
            torch.empty(self._beside, dtype=self._slices.type, device=self._slices.device)
            for _ in range(min(2, len(self._rounds)))
        ]
        stream = getattr(self._link, "stream", None)
        read = [None, None]  # events: what lay in a half has been taken
        with torch.no_grad():
            self._slices.clear_padding()
            if stream is not None:
                stream.wait_stream(torch.cuda.current_stream())
            for index, entries in enumerate(self._rounds):
                if stream is not None and read[index % 2] is not None:
                    stream.wait_event(read[index % 2])
                turned = self._receive(entries, halves[index % 2])
                if stream is not None:
                    torch.cuda.current_stream().wait_stream(stream)
                for one, lying in turned:
                    self._slices.place(one).copy_(lying.t() if one.transposed else lying)
                if stream is not None:
                    read[index % 2] = torch.cuda.current_stream().record_event()
                moved += sum(self._slices.bytes_of(one) for one in entries)
            self._link.finish(self._timeout_s)
        return moved

    def _direct(self, one):
        return not one.transposed and self._slices.place(one).is_contiguous()

    def _receive(self, entries, beside):
        """Begins a round; returns the slices that then lie in `beside`, with their memory there."""
        messages, turned, at = [], [], 0
        for one in entries:
            if self._direct(one):
                messages.append((one.rank, self._slices.place(one)))
                continue
            lying = beside[at : at + one.elements]
            at += one.elements
            messages.append((one.rank, lying))
            shape = (one.columns, one.rows) if one.transposed else (one.rows, one.columns)
            turned.append((one, lying.view(shape)))
        self._link.receive(messages)
        return turned


class _Slice:
    """A rectangle of a parameter, and where its elements lie in a rank's block."""

    def __init__(
        self, parameter, row, last_row, column, last_column, transposed, rank, offset, tensor,
        corner, pitch
    ):
        self.parameter, self.transposed = parameter, transposed
        self.row, self.rows = row, last_row - row
        self.column, self.columns = column, last_column - column
        self.rank, self.offset = rank, offset
        self.tensor, self.corner, self.pitch = tensor, corner, pitch
        self.elements = self.rows * self.columns

    def __str__(self):
        return (
            f"rows {self.row} to {self.row + self.rows}, "
            f"columns {self.column} to {self.column + self.columns}"
        )

    def fits(self, parameter):
        rows = parameter.shape[0]
        columns = parameter.shape[1] if parameter.dim() == 2 else 1
        return (
            parameter.dim() <= 2
            and self.row + self.rows <= rows
            and self.column + self.columns <= columns
        )

    def of(self, parameter):
        rows = parameter[self.row : self.row + self.rows]
        return rows if parameter.dim() == 1 else rows[:, self.column : self.column + self.columns]
