"""Digests of weights that add up, whoever holds which part of a tensor.

An element adds mix(seed + position * STEP + bits) modulo 2^64: `bits` is the element as an unsigned
number, `position` its row-major place in the whole tensor of the checkpoint, `seed` the mixed FNV-1a
hash of the tensor's name; mix is SplitMix64's output function (Steele, Lea and Flood 2014).
"""

import torch

_STEP = 0x9E3779B97F4A7C15
_PIECE = 1 << 22  # elements at a time
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32}


def _signed(word):
    word &= (1 << 64) - 1
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
        word = (word ^ letter) * 0x100000001B3 & (1 << 64) - 1
    return int(_mix(torch.tensor([_signed(word)]))[0]) & (1 << 64) - 1


def digest_of_rows(part, name, first, pitch):
    """The digest of a matrix `part` whose corner is element `first` of the tensor `name`, with rows
    of `pitch` elements; an unsigned 64-bit number."""
    bits = part.contiguous().view(_BITS[part.element_size()])
    mask = (1 << 8 * part.element_size()) - 1
    rows_at_once = max(1, _PIECE // max(1, part.shape[1]))
    columns = torch.arange(part.shape[1], device=part.device)
    total, seed = 0, seed_of(name)
    for begin in range(0, part.shape[0], rows_at_once):
        piece = bits[begin : begin + rows_at_once].long() & mask
        rows = torch.arange(begin, begin + piece.shape[0], device=part.device)
        position = first + rows[:, None] * pitch + columns[None, :]
        words = position * _signed(_STEP) + _signed(seed) + piece
        total += int(_mix(words).sum())
    return total & (1 << 64) - 1
