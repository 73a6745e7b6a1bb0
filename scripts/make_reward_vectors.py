#!/usr/bin/env python3
"""Makes tests/executor/rewards/verl_scores.json: what verl 0.9.1's own reward functions
(utils/reward_score) give for written and for randomly composed responses and truths.

usage: .venv-verl/bin/python3 scripts/make_reward_vectors.py [FILE]
Packages that single functions are imported beside, and that no function called here uses
(mathruler, pylatexenc), are replaced by empty modules.
"""
import json
import math
import os
import random
import sys
import types

os.environ.setdefault("RAY_DEDUP_LOGS", "0")
for name, members in {"mathruler": [], "mathruler.grader": ["extract_boxed_content", "grade_answer"],
                      "pylatexenc": ["latex2text"], "pylatexenc.latex2text": []}.items():
    module = types.ModuleType(name)
    for member in members:
        setattr(module, member, None)
    sys.modules.setdefault(name, module)

from verl.utils.reward_score import default_compute_score, geo3k, gsm8k, math_dapo, math_reward  # noqa: E402
from verl.utils.reward_score.prime_math.grader import is_digit  # noqa: E402

CASES = 700  # random ones of each rule


def numeric(response, truth):
    """The last number as gsm8k finds it, read as prime_math reads it, equal within a millionth."""
    answer = gsm8k.extract_solution(response, method="flexible")
    if answer is None:
        return 0.0
    (mine, a), (right, b) = is_digit(answer), is_digit(truth)
    return float(mine and right and math.isclose(b, a, rel_tol=1e-6))


RULES = {
    "gsm8k": lambda r, t: gsm8k.compute_score(r, t),
    "gsm8k_flexible": lambda r, t: gsm8k.compute_score(r, t, method="flexible"),
    "numeric": numeric,
    "math": lambda r, t: math_reward.compute_score(r, t),
    "math_dapo": lambda r, t: math_dapo.compute_score(r, t)["score"],
    "format": lambda r, t: geo3k.format_reward(r),
}

NUMBERS = ["0", "7", "42", "-3", "1,000", "1000", "3.14", ".5", "0.5", "-0", "1/2", "3/4", "-1/2", "10/20", "007",
           "12e3", "1_000", "1{,}234", "1,2,3", "5.", "--4", "+8", "1.000000001", "999999999999", "\u0663", "\u00b2", "x", ""]
LATEX = ["\\frac12", "\\frac{1}{2}", "\\dfrac{3}{4}", "\\tfrac1{72}", "\\frac{72}1", "\\frac", "\\frac1", "\\frac{x+1}2",
         "\\sqrt3", "\\sqrt{3}", "\\sqrt", "\\sqrtab", "\\sqrt{2}\\sqrt5", "2\\sqrt x", "\\left(1, 2\\right)", "(1,2)",
         "90^\\circ", "90^{\\circ}", "\\$5", "$5$", "5\\%", "50\\\\%", "12\\text{ cm}", "12 \\text{ square feet}",
         "3\\text{ a}\\text{ b}", "\\text{Friday}", "\\mbox{yes}", "x=3", "k = .5", "abc=1", "a=b=c", "{.5}", "a .5", "\\!1",
         "1,\\!000", "\\mathrm{th}", "\\textbf{B}", "\\overline{AB}", "fracab", "frac{a}b", "sqrt", "frac\na", "10 dollars",
         "an apple", "a b", "5 units", "\\text{m}", "\\text{\ns}", "7\\;", "\"x\"", "\\dots", "\\ldots", "2,\\text{and}3",
         "$a$ b $c$", "$only", "n\n$x$\n$y", "\\text{un\nclosed}", "\\boxed{3}", "{", "}", "\u00e9\\frac12", "\U0001d54f"]
WORDS = ["The answer is ", "#### ", "####", "### ", "\n", " ", "so ", "Answer: ", "ANSWER:", "an\u017fwer : ", "Answer\n:\n ",
         "answer:  ", "Answer:\t", "\\boxed{", "\\boxed ", "\\boxed", "\\fbox{", "}", "{", "$", "<think>", "</think>", ". ", "= ",
         "because ", "x" * 95, "y" * 290, "\u2028", "\x1c", ""]

WRITTEN = {
    "gsm8k": [("so 40+2\n#### 42", "42"), ("#### 42 or #### 43", "42"), ("#### 1,000", "1000"), ("#### $5", "5"),
              ("#### -3.0", "-3"), ("####42", "42"), ("#### 42" + "z" * 293, "42"), ("#### 42" + "z" * 294, "42"),
              ("#### 4\u00e9", "4"), ("#### ...", "..."), ("#### 42.", "42"), ("", "42"), ("\u00e9" * 299 + "#### 9", "9")],
    "gsm8k_flexible": [("it is 42", "42"), ("it is 42.", "42"), ("it is 42 .", "42"), (".", "."), (". ,", ","), ("5-3", "-3"),
                       ("none", "")],
    "numeric": [("it is 42.", "42"), ("1,000", "1000"), ("1000.0", "1,000"), ("1000.0001", "1000"), ("1000.01", "1000"),
                ("1.2.3", "1.2.3"), ("7", "seven"), ("7", " 7 "), ("7", "7e0"), ("inf", "inf"), ("0", "-0"), ("-5", "5"),
                ("9" * 299, "9" * 310), ("5", "_5"), ("15", "1_5"), ("1234", "1{,}234"), ("3", "\u0663"), ("2", "")],
    "math": [("\\boxed{42}", "42"), ("\\boxed 42$ x", "42"), ("\\boxed{\\frac12}", "1/2"), ("\\boxed{0.5}", "\\frac{1}{2}"),
             ("\\fbox{3}", "3"), ("\\boxed{1} \\boxed{2}", "2"), ("\\boxed{1", "1"), ("\\boxed3 {4}", "4"), ("\\boxed}{3}", "3"),
             ("\\boxed{12\\text{ cm}}", "12"), ("\\boxed{3\\text{ a}\\text{ b}}", "3\\text{ a}\\text{ b}"),
             ("\\boxed{\\sqrt}", "\\sqrt"), ("\\boxed{\\frac}", "\\frac"), ("\\boxed{\\frac1}", "\\frac1"), ("\\boxed{}", ""),
             ("\\boxed{k=3}", "3"), ("\\boxed{-0/1}", "\\frac{-0}{1}"), ("\\boxed{3/4}", "\\frac34"), ("no box", "3"),
             ("\\boxed{" + "1" * 4301 + "/2}", "\\frac{" + "1" * 4301 + "}{2}")],
    "math_dapo": [("Answer: 42", "42"), ("answer : $42$", "42"), ("Answer:\n\n42", "42"), ("Answer:  ", " "), ("Answer: \n", "x"),
                  ("Answer:\n", ""), ("Answer: \\boxed{42}", "42"), ("\\boxed{42}", "42"), ("\\boxed{42}" + "z" * 91, "42"),
                  ("none", "[INVALID]"), ("Answer: 1,000", "1000"), ("Answer: \\frac12", "\\frac{1}{2}"), ("Answer: 1\nAnswer: 2", "2"),
                  ("Answer: \u00b2,\u00b3", "\u00b2\u00b3"), ("An\u017fwer: 5", "5"), ("Answer: x = 5", "5"), ("Answer:\x1c5", "5"),
                  ("Answer: 5 \u00a0", "5"), ("Answer: $1$ and $2$", "1")],
    "format": [("<think>a</think>\\boxed{1}", ""), ("<think>\na\n</think> so \\boxed{1}.", ""), (" <think></think>\\boxed{}", ""),
               ("<think></think>\\boxed{", ""), ("<think>\\boxed{1}</think>", ""), ("<think></think></think>\\boxed{\n}\n", "")],
}


PLAIN = ["\\frac{1}{2}", "\\frac{3}{4}", "\\frac{1}{72}", "\\sqrt{3}", "(1,2)", "90", "5", "50", "12", "3", "0.5", "1000", "x", "Friday", "yes",
         "1", "AB", "B", "10", "apple", "10 dollars", "\\frac{a}{b}", "frac{a}{b}", "2,3", "\\sqrt{a}b", "\\text{12}", "{0.5}", "a0.5", "ab", "s", "th"]


def equal_pairs(rule, lead, end):
    """Answers that are written otherwise than the truth and are right all the same."""
    answers = NUMBERS + LATEX + PLAIN
    pairs = [(lead + a + end, b) for a in answers for b in answers if a != b]
    return [(r, t) for r, t in pairs if RULES[rule](r, t) > 0]


def composed(draw, rule):
    """A response and a truth that share parts often enough to be right at times."""
    value = draw.choice(NUMBERS + LATEX if rule.startswith("math") else NUMBERS)
    truth = value if draw.random() < 0.6 else draw.choice(NUMBERS + LATEX)
    if draw.random() < 0.2:
        truth += draw.choice(LATEX)
    parts = [draw.choice(WORDS + LATEX) for _ in range(draw.randrange(4))]
    lead = {"gsm8k": "#### ", "math": "\\boxed{", "math_dapo": "Answer: "}.get(rule, "")
    if rule == "format":
        parts = [draw.choice(["<think>", "</think>", "\\boxed{", "}", "a", "\n"]) for _ in range(draw.randrange(2, 9))]
        return "".join((["<think>"] if draw.random() < 0.7 else []) + parts), truth
    parts.append(lead if draw.random() < 0.85 else draw.choice(WORDS))
    parts.append(value)
    if lead.endswith("{"):
        parts.append("}")
    parts += [draw.choice(WORDS) for _ in range(draw.randrange(3))]
    return "".join(parts), truth


def main():
    file = sys.argv[1] if len(sys.argv) > 1 else "tests/executor/rewards/verl_scores.json"
    draw = random.Random(1)
    sys.stdout = open(os.devnull, "w")  # verl prints what it catches
    rules = {}
    for rule, score in RULES.items():
        pairs = list(WRITTEN[rule])
        if rule in ("math", "math_dapo"):
            pairs += equal_pairs(rule, *({"math": ("\\boxed{", "}"), "math_dapo": ("Answer: ", "")}[rule]))
        pairs += [composed(draw, rule) for _ in range(CASES)]
        rules[rule] = [[r, t, float(score(r, t))] for r, t in pairs]
    sources = ["openai/gsm8k", "lighteval/MATH", "DigitalLearningGmbH/MATH-lighteval", "HuggingFaceH4/MATH-500", "math_dapo",
               "math", "math_dapo_reasoning", "aime24", "aime2025"]
    texts = [("#### 42", "42"), ("\\boxed{42}", "42"), ("Answer: 42", "42"), ("no", "42")]
    by_source = []
    for source in sources:
        for r, t in texts:
            result = default_compute_score(source, r, t)
            by_source.append([source, r, t, result["score"] if isinstance(result, dict) else result])
    sys.stdout = sys.__stdout__
    with open(file, "w") as out:
        out.write('{"source": "verl 0.9.1, utils/reward_score; scripts/make_reward_vectors.py",\n')
        for rule, rows in rules.items():
            out.write(f'"{rule}": [\n' + ",\n".join(json.dumps(row) for row in rows) + "\n],\n")
        out.write('"by_data_source": [\n' + ",\n".join(json.dumps(row) for row in by_source) + "\n]}\n")
    right = {rule: sum(row[2] > 0 for row in rows) for rule, rows in rules.items()}
    print(f"{sum(map(len, rules.values()))} scores, right: {right}")


if __name__ == "__main__":
    main()
