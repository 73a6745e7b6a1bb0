"""Which characters Hugging Face's tokenizers take for a class of characters, as JSON {class: [[first, last], ...]}.

usage: split_pattern_oracle.py OUTPUT CLASS...
"""
import json
import sys

from tokenizers import Regex, pre_tokenizers

# Without the planes that have no characters.
POINTS = [c for c in range(0x80, 0x40000) if not 0xd800 <= c < 0xe000]
TEXT = "\n" + "\n".join(map(chr, POINTS)) + "\n"


def ranges(points):
    found = []
    for c in sorted(points):
        if found and found[-1][1] == c - 1:
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


out = {}
for name in sys.argv[2:]:
    pieces = pre_tokenizers.Split(Regex(name), "isolated").pre_tokenize_str(TEXT)
    out[name] = ranges(ord(piece) for piece, _ in pieces if len(piece) == 1 and piece != "\n")
with open(sys.argv[1], "w") as file:
    json.dump(out, file)
