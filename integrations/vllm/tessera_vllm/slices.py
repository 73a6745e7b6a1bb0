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
        self.bytes = sum(self.bytes_of(one) for one in self.all)
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
        self._straight = None  # places, and what is copied there; prepared by the first bring()
        self._turned = []
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
        self._straight, self._turned = None, []
        for block in self._blocks.values():
            block.close()
        self._blocks = {}

    def bring(self):
        """Every slice to its place; returns the bytes of all. The device may be at work still."""
        if self._straight is None:
            self._prepare()
        with torch.no_grad():
            self._slices.clear_padding()
            if self._straight[0]:
                torch._foreach_copy_(*self._straight)
            for source, lying, target in self._turned:
                lying.copy_(source)  # first as it lies, then turned within this device's memory
                target.copy_(lying.t())
        return self._slices.bytes

    def _prepare(self):
        """The views of every copy: places of parameters stay, and making a view takes the host
        longer than most copies take the device."""
        places, sources, self._turned = [], [], []
        for one in self._slices.all:
            source, target = self._source(one), self._slices.place(one)
            if one.transposed:
                shape = (one.columns, one.rows)
                lying = self._scratch[: one.elements].view(shape)
                self._turned.append((source.view(shape), lying, target))
            else:
                places.append(target)
                sources.append(source.view(target.shape))
        self._straight = (places, sources)

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
    it and are turned, while the next round is under way. What a round does is prepared once: the
    places of parameters stay, and a message costs the host less than it takes to travel.
    """

    def __init__(self, slices, link, timeout_s):
        self._slices, self._link, self._timeout_s = slices, link, timeout_s
        self._rounds, first = [], 0
        for last in slices.rounds:
            # Both ends send and receive a round's largest messages first (nccl_communicator.cc).
            entries = sorted(slices.all[first:last], key=lambda one: -one.elements)
            self._rounds.append(_Round(slices, entries))
            first = last
        self._beside = max((each.beside for each in self._rounds), default=0)

    def close(self):
        self._link.close()

    def bring(self):
        """As MappedWeights.bring; all is there when it returns."""
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
            for index, each in enumerate(self._rounds):
                if stream is not None and read[index % 2] is not None:
                    stream.wait_event(read[index % 2])
                beside = halves[index % 2]
                self._link.receive(each.messages(beside))
                if stream is not None:
                    torch.cuda.current_stream().wait_stream(stream)
                each.turn(beside)
                if stream is not None:
                    read[index % 2] = torch.cuda.current_stream().record_event()
            self._link.finish(self._timeout_s)
        return self._slices.bytes


class _Round:
    """Slices that come together, largest first. `beside`: elements that come beside their places."""

    def __init__(self, slices, entries):
        self._messages = []  # sender, and the place, or the elements of `beside` that it fills
        self._turned = []  # place, elements of `beside`, their shape, whether they are turned
        self.beside = 0
        for one in entries:
            place = slices.place(one)
            if not one.transposed and place.is_contiguous():
                self._messages.append((one.rank, place, None))
                continue
            part = slice(self.beside, self.beside + one.elements)
            self.beside = part.stop
            self._messages.append((one.rank, None, part))
            shape = (one.columns, one.rows) if one.transposed else (one.rows, one.columns)
            self._turned.append((place, part, shape, one.transposed))

    def messages(self, beside):
        return [
            (sender, beside[part] if place is None else place)
            for sender, place, part in self._messages
        ]

    def turn(self, beside):
        for place, part, shape, transposed in self._turned:
            lying = beside[part].view(shape)
            place.copy_(lying.t() if transposed else lying)


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
