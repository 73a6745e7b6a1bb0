"""Digests of weights that add up, whoever holds which part of a tensor.

An element adds mix(seed + position * STEP + bits) modulo 2^64: `bits` is the element as an unsigned
number, `position` its row-major place in the whole tensor of the checkpoint, `seed` the mixed FNV-1a
hash of the tensor's name; mix is SplitMix64's output function (Steele, Lea and Flood 2014).
"""

import torch

_STEP = 0x9E3779B97F4A7C15
_WORD = (1 << 64) - 1
_PIECE = 1 << 22  # elements at a time
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32}


def _signed(word):
    word &= _WORD
    return word - (1 << 64) if word >> 63 else word


def _shifted(words, by):
    """Logical shift to the right of int64 words."""
    return (words >> by) & ((1 << (64 - by)) - 1)


def _mix(words):
    words = (words ^ _shifted(words, 30)) * _signed(0xBF58476D1CE4E5B9)
    words = (words ^ _shifted(words, 27)) * _signed(0x94D049BB133111EB)
    return words ^ _shifted(words, 31)


def seed_of(name):
    """Where the digests of a tensor begin, by its name in the checkpoint."""
    word = 0xCBF29CE484222325
    for letter in name.encode():
        word = (word ^ letter) * 0x100000001B3 & _WORD
    return int(_mix(torch.tensor([_signed(word)]))[0]) & _WORD


def _words_of(part, seed, first, pitch):
    """What each element of a matrix adds."""
    bits = part.contiguous().view(_BITS[part.element_size()])
    mask = (1 << 8 * part.element_size()) - 1
    rows = torch.arange(part.shape[0], device=part.device)
    columns = torch.arange(part.shape[1], device=part.device)
    position = first + rows[:, None] * pitch + columns[None, :]
    return _mix(position * _signed(_STEP) + _signed(seed) + (bits.long() & mask))


def _sum_of(part, name, first, pitch, seeds):
    """As digest_of_rows, an int64 of the part's device, which may be at work still."""
    if name not in seeds:
        seeds[name] = seed_of(name)
    rows_at_once = max(1, _PIECE // max(1, part.shape[1]))
    total = torch.zeros((), dtype=torch.int64, device=part.device)
    for begin in range(0, part.shape[0], rows_at_once):
        piece = part[begin : begin + rows_at_once]
        total += _words_of(piece, seeds[name], first + begin * pitch, pitch).sum()
    return total


def digest_of_rows(part, name, first, pitch):
    """The digest of a matrix `part` whose corner is element `first` of the tensor `name`, with rows
    of `pitch` elements; an unsigned 64-bit number."""
    return int(_sum_of(part, name, first, pitch, {})) & _WORD


def _rectangle(parameters, entry):
    parameter, row, last_row, column, last_column, _, _, _ = entry
    if parameter not in parameters:
        raise ValueError(f"vLLM's model has no parameter {parameter}")
    held = parameters[parameter]
    columns = held.shape[1] if held.dim() == 2 else 1
    if held.dim() > 2 or last_row > held.shape[0] or last_column > columns:
        raise ValueError(f"{parameter} is {tuple(held.shape)} and has no rows {row} to {last_row}, "
                         f"columns {column} to {last_column}")
    return held.detach().reshape(held.shape[0], columns)[row:last_row, column:last_column]


def digests_of(parameters, rectangles):
    """Digests, as texts, of rectangles of parameters: [parameter, first row, last row, first column,
    last column, tensor, corner, pitch] each."""
    seeds = {}
    sums = [
        _sum_of(_rectangle(parameters, entry), *entry[5:], seeds) for entry in rectangles
    ]
    if not sums:
        return []
    return [str(word & _WORD) for word in torch.stack(sums).tolist()]

