"""The table of slices that a run sends (executor/vllm/slices.h), and copies by it."""

import json

import torch

from tessera_vllm import blocks, digest

_TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class Slices:
    """One worker's slices, checked against its parameters; copies them and digests what is there.

    `parameters`: the model's, by name, each once. Raises ValueError where the table and the
    parameters are not for each other: every element must have its slice, or be a zero.
    """

    def __init__(self, table, worker, parameters):
        table = json.loads(table)
        if table["version"] != 1:
            raise ValueError(f"a table of version {table['version']}, expected 1")
        self._type = _TYPES[table["dtype"]]
        self._parameters = parameters
        self._slices = [_Slice(*entry) for entry in table["workers"][worker]["slices"]]
        self._zeros = [tuple(entry) for entry in table["workers"][worker]["zeros"]]
        self._check(parameters)
        self._blocks = {}
        self._scratch = None
        try:
            for rank in sorted({one.rank for one in self._slices}):
                name, size = table["blocks"][rank]
                self._blocks[rank] = blocks.map_block(name, size, table["device"])
        except Exception:
            self.close()
            raise
        largest = max((one.elements for one in self._slices if one.transposed), default=0)
        device = next(iter(parameters.values())).device
        self._scratch = torch.empty(largest, dtype=self._type, device=device)

    def close(self):
        for block in self._blocks.values():
            block.close()
        self._blocks = {}

    def copy(self):
        """Every slice to its place; returns the bytes of all. The device may be at work still."""
        moved = 0
        with torch.no_grad():
            for name, first, last in self._zeros:
                self._parameters[name][first:last].zero_()
            for one in self._slices:
                source = self._source(one)
                target = one.of(self._parameters[one.parameter])
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
        for one in self._slices:
            source = self._source(one)
            held = one.of(self._parameters[one.parameter]).reshape(one.rows, one.columns)
            lying = held.t() if one.transposed else held
            bits = torch.int16 if self._type.itemsize == 2 else torch.int32
            same = torch.equal(lying.contiguous().view(-1).view(bits), source.view(bits))
            if not same and one.tensor not in names:
                names.append(one.tensor)
        return names

    def digests(self):
        """By tensor of the checkpoint: [digest as text, elements] of what the worker holds."""
        sums = {}
        for one in self._slices:
            held = one.of(self._parameters[one.parameter]).reshape(one.rows, one.columns)
            part = digest.digest_of_rows(held, one.tensor, one.corner, one.pitch)
            total, elements = sums.get(one.tensor, (0, 0))
            sums[one.tensor] = ((total + part) & (1 << 64) - 1, elements + one.elements)
        return {name: [str(total), elements] for name, (total, elements) in sums.items()}

    def _source(self, one):
        size = one.elements * self._type.itemsize
        return self._blocks[one.rank].bytes[one.offset : one.offset + size].view(self._type)

    def _check(self, parameters):
        filled = dict.fromkeys(parameters, 0)
        for one in self._slices:
            if one.parameter not in parameters:
                raise ValueError(f"vLLM's model has no parameter {one.parameter}")
            parameter = parameters[one.parameter]
            if parameter.dtype != self._type:
                raise ValueError(
                    f"{one.parameter} is {parameter.dtype}, the trainer's is {self._type}"
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
