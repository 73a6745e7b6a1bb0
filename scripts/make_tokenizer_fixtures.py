#!/usr/bin/env python3
"""Makes tests/executor/data/fixtures: small BPE tokenizers, byte-level ones and ones of SentencePiece's kind with
the steps that tokenizer.json of Llama 2 and Mistral have, and what the `tokenizers`
library (0.23) makes of tricky strings with them.

usage: make_tokenizer_fixtures.py [FOLDER]
Every fixture is tokenizer.json with cases.json: text, its ids, the first ids with special tokens, the
ids decoded, and decoded without the first and the last id.
"""
import json
import os
import sys

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, processors, trainers)

QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
LLAMA3 = QWEN2.replace(r"\p{N}|", r"\p{N}{1,3}|")

TEXT = [
    "The quick brown fox jumps over the lazy dog. It's what they'd do, isn't it? We'll see; I've won.",
    "reverse the digits 1234567890 and sort 42 31 20; copy 7 8 9, then the answer is 100.",
    "def main(argc):\n    for i in range(10):\n        print(i)\n\n    return 0\n",
    "Übergrößen façade naïve café résumé Ærøskøbing coöperate",
    "Привет мир, как дела? Это проверка. Καλημέρα κόσμε. שלום עולם مرحبا بالعالم",
    "你好，世界！今天天气很好。機器學習 こんにちは世界 안녕하세요 세계",
    "🙂🎉👩‍👩‍👧‍👦🇩🇪 ok 👍🏽 fine",
    "the the the there then these those them their and and answer answers answered answering",
    "x = a*b + c/d - e**2; y <= z != w && (p || q) -> r => s :: t ... --- ___",
]

PIECES = [
    "", " ", "  ", "   a", "a   ", "\n", "\n\n", "\r\n", " \n", "\n ", "\t", "\t\tx", " \t \n x", "a\nb",
    "a \n b", "a\u00a0b", "a\u2003b", "a\u3000b", "\u180e", "a\u180eb", "a \u180e b", "\u0085", "a\u0085b",
    "\u2028", "a\u2029b", "\u200b", "a\u200bb", "\ufeff", "a\ufeffb", "\x00", "a\x00b", "\x1f", "\x7f",
    "it's", "IT'S", "It'S", "they'll", "THEY'LL", "I'm", "I'M", "we've", "you're", "he'd", "don't", "o'clock",
    "'s", " 's", "''s", "'\u017f", "it'\u017f x", "rock'n'roll", "\u2019s", "it\u2019s",
    "1", "12", "123", "1234", "1 2 3", "3.14159", "1e-6", "1,000,000", "0x1F", "\u0661\u0662\u0663", "\u00b2\u00b3",
    "\u2167", "\u4e09", "a1b2", "1a", "v2.0", "100%", "$5", "#1", "r417=", "714",
    "hello", "Hello", "HELLO", " hello", "hello ", "hello world", "helloworld", "the answer is 42.",
    "(a)", "[b]", "{c}", "a.b.c", "...", "?!", " ...", "a...b", "--", "a--b", "->", " =>\n", "!!\n\n", "x;\r\n\r\ny",
    "foo_bar", "fooBar", "foo-bar", "a/b/c", "http://x.org/?q=1&r=2", "user@example.com", "C:\\dir\\file",
    "caf\u00e9", "cafe\u0301", "\u00c5ngstr\u00f6m", "A\u030angstro\u0308m", "\u1e9b\u0323", "\u0344", "\u212b", "\u2126",
    "q\u0307\u0323", "q\u0323\u0307", "\u0958", "\uac00", "\u1100\u1161", "\u1100\u1161\u11a8", "\ufb01", "\u00df",
    "na\u00efve", "\u0130stanbul", "\u01c5", "\u02b0", "\u0301", " \u0301", "a\u0301\u0302\u0303",
    "\u4f60\u597d", "\u4f60\u597d\uff0c\u4e16\u754c\uff01", "\u4eca\u5929 \u5929\u6c14", "\u3053\u3093\u306b\u3061\u306f",
    "\uc548\ub155\ud558\uc138\uc694", "\u304b\u3099", "\u30ab\u3099", "\U00020000", "\u4e2d1\u65872",
    "\u041f\u0440\u0438\u0432\u0435\u0442", "\u041f\u0440\u0438\u0432\u0435\u0442 \u043c\u0438\u0440!", "\u0438\u0306", "\u0439",
    "\u05e9\u05dc\u05d5\u05dd", "\u05e9\u05c1\u05b8", "\u0645\u0631\u062d\u0628\u0627", "\u0915\u094d\u0937\u093f", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "\U0001f642", "\U0001f642\U0001f642", "a\U0001f642b", " \U0001f642", "\U0001f44d\U0001f3fd", "\U0001f1e9\U0001f1ea",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467", "\u2764\ufe0f", "\u2122", "\u00a9 2024", "\u20ac5", "\u221e", "\U0001d54f", "\U0010ffff",
    "\ufffd", "\ue000", "\u00ad", "a\u00adb", "\u061c", "\u2060x",
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "a<|endoftext|>b", " <|endoftext|> ", "<|endoftext|><|endoftext|>",
    "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n", "<|im_start", "im_end|>", "<|IM_END|>", "<|endoftext|",
    "<tool>", "x<tool>y", " <tool> ", "  <tool>  z", "\n<tool>\n", "<tool><tool>", "word", "sword", "word word", "a-word!", "words",
    "caf\u00e9tok", "cafe\u0301tok", "xcafe\u0301toky", "<|a|>", "<|a|>b|>", "<|a|><|a|>b|>",
]


def cases():
    texts = list(dict.fromkeys(PIECES + TEXT))
    texts += [a + b for a, b in zip(PIECES[::3], PIECES[1::3])]
    texts += [TEXT[i] + TEXT[(i * 5 + 2) % len(TEXT)] for i in range(len(TEXT))]
    texts.append("a" * 300)
    texts.append(" " * 120 + "x")
    texts.append("the answer " * 40)
    return list(dict.fromkeys(texts))


def train(pattern, vocab, ignore_merges):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = (
        pre_tokenizers.ByteLevel(add_prefix_space=True) if pattern is None else
        pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(pattern), behavior="isolated", invert=False),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]))
    tokenizer.decoder = decoders.ByteLevel(add_prefix_space=False, use_regex=False)
    trainer = trainers.BpeTrainer(vocab_size=vocab, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(TEXT, trainer)
    return tokenizer


def qwen2():
    tokenizer = train(QWEN2, 520, False)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.post_processor = processors.ByteLevel(
        add_prefix_space=False, trim_offsets=False, use_regex=False)
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer.add_tokens([
        AddedToken("<tool>", lstrip=True, rstrip=True, normalized=False),
        AddedToken("word", single_word=True, normalized=False),
        AddedToken("caf\u00e9tok", normalized=True),
        AddedToken("<|a|>", normalized=False), AddedToken("<|a|>b|>", normalized=False)])
    return json.loads(tokenizer.to_str())


def llama3():
    document = json.loads(train(LLAMA3, 420, True).to_str())
    # A word that no merges make: ignore_merges finds it whole.
    document["model"]["vocab"]["\u0120zyx"] = len(document["model"]["vocab"])
    tokenizer = Tokenizer.from_str(json.dumps(document))
    tokenizer.add_special_tokens(["<|begin|>", "<|end|>"])
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(
            single="<|begin|> $A", pair="<|begin|> $A $B:1",
            special_tokens=[("<|begin|>", tokenizer.token_to_id("<|begin|>"))])])
    document = json.loads(tokenizer.to_str())
    # The older spelling of merges.
    document["model"]["merges"] = [" ".join(pair) for pair in document["model"]["merges"]]
    return document


def gpt2():
    tokenizer = train(None, 400, False)
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return json.loads(tokenizer.to_str())


MARK = "\u2581"


def sentence(normalizer, pre_tokenizer, template=True):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=MARK, prepend_scheme="always", split=True)
    plain = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=620, show_progress=False, special_tokens=plain, min_frequency=2)
    tokenizer.train_from_iterator([text for text in TEXT if text.isascii()] + TEXT[3:5], trainer)
    document = json.loads(tokenizer.to_str())
    vocab, merges = document["model"]["vocab"], document["model"]["merges"]
    for left in (MARK, MARK * 2, MARK * 4):  # runs of spaces, as SentencePiece has them
        vocab[left * 2] = len(vocab)
        merges.append([left, left])
    document["added_tokens"] = document["added_tokens"][:3]  # bytes are tokens of the model alone
    tokenizer = Tokenizer.from_str(json.dumps(document))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
    tokenizer.decoder = decoders.Sequence([
        decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    if template:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    tokenizer.add_tokens([
        AddedToken("<tool>", lstrip=True, rstrip=True, normalized=False),
        AddedToken("word", single_word=True, normalized=False),
        AddedToken("caf\u00e9tok", normalized=True), AddedToken("<|a|>", normalized=False)])
    return json.loads(tokenizer.to_str())


def llama2():
    return sentence(normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)]), None)


def mistral():
    return sentence(None, pre_tokenizers.Metaspace(replacement=MARK, prepend_scheme="first", split=False))


def metaspace():
    document = sentence(normalizers.NFC(),
                        pre_tokenizers.Metaspace(replacement=MARK, prepend_scheme="always", split=True), False)
    # Without bytes: what is not in the vocabulary is unknown, each time anew.
    document["model"]["byte_fallback"] = document["model"]["fuse_unk"] = False
    return document


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(
        os.path.dirname(__file__), "..", "tests", "executor", "data", "fixtures")
    for name, make in (("qwen2", qwen2), ("llama3", llama3), ("gpt2", gpt2), ("llama2", llama2),
                       ("mistral", mistral), ("metaspace", metaspace)):
        folder = os.path.join(root, name)
        os.makedirs(folder, exist_ok=True)
        document = json.dumps(make(), ensure_ascii=False, indent=0)
        with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as out:
            out.write(document + "\n")
        tokenizer = Tokenizer.from_str(document)
        rows = []
        for text in cases() + ([" zyx", "a zyx", " zyxw"] if name == "llama3" else []):
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            rows.append({"text": text, "ids": ids,
                         "with_special": tokenizer.encode(text).ids[:3],
                         "decoded": tokenizer.decode(ids),
                         "cut": tokenizer.decode(ids[1:-1], skip_special_tokens=False)})
        with open(os.path.join(folder, "cases.json"), "w", encoding="utf-8") as out:
            out.write("[\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]\n")
        print(f"{name}: {len(rows)} cases, {tokenizer.get_vocab_size()} tokens")


if __name__ == "__main__":
    main()
