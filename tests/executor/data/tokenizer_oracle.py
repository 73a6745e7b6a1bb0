"""Random strings and what Hugging Face's tokenizers make of them, as JSON lines {"text", "ids"}.

usage: tokenizer_oracle.py TOKENIZER.json COUNT OUTPUT
The strings mix words, digits, white space of all kinds, added tokens, scripts and random code points.
"""
import json
import random
import sys

from tokenizers import Tokenizer

file, count, output = sys.argv[1], int(sys.argv[2]), sys.argv[3]
tokenizer = Tokenizer.from_file(file)
added = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
draw = random.Random(7)
words = ["the", "The", "it's", "THEY'LL", "answer", "1234567890", "3.14", "don't", "x_y", "foo-bar", "na\u00efve", "\u00dcber", "\u041f\u0440\u0438\u0432\u0435\u0442",
         "\u4f60\u597d", "\u4e16\u754c", "\u3053\u3093", "\uc548\ub155", "\u0645\u0631", "\u05e9\u05dc", "\u0915\u094d\u0937", "\U0001f642", "\U0001f469\u200d\U0001f469", "e\u0301", "\u00e9",
         "\u212b", "'s", "'", "\"", "...", "->", "!!", "\\frac{1}{2}", "$x$", "def f(x):", "\u017f", "\u0130", "\ufb01", "\u00b2", "\u0661", "\u2167"]
spaces = [" ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", "\u00a0", "\u3000", "\u2028", "\u0085", "\u180e", "\u200b", " \n", "\n ", ""]


def point():
    while True:
        c = draw.choice([draw.randrange(0x80), draw.randrange(0x800), draw.randrange(0x10000), draw.randrange(0x110000)])
        if not 0xd800 <= c < 0xe000:
            return chr(c)


def text():
    parts = []
    for _ in range(draw.randrange(1, 14)):
        kind = draw.random()
        if kind < 0.55:
            parts.append(draw.choice(words))
        elif kind < 0.75:
            parts.append("".join(point() for _ in range(draw.randrange(1, 6))))
        elif kind < 0.8 and added:
            parts.append(draw.choice(added))
        else:
            parts.append("".join(draw.choice("aeinrst ") for _ in range(draw.randrange(1, 30))))
        parts.append(draw.choice(spaces))
    return "".join(parts)


with open(output, "w") as out:
    for _ in range(count):
        string = text()
        encoded = tokenizer.encode(string, add_special_tokens=False).ids
        out.write(json.dumps({"text": string, "ids": encoded, "decoded": tokenizer.decode(encoded, skip_special_tokens=False)}) + "\n")
