#!/usr/bin/env python3
"""Makes tests/executor/rewards/verl_unit_tests.json: what verl 0.9.1's prime_code gives for written
pieces of code and their unit tests. The package is loaded from its folder, so that only numpy is needed.

usage: python3 scripts/make_unit_test_vectors.py VERL_FOLDER [FILE]
VERL_FOLDER is the folder of the installed package (site-packages/verl).
"""
import copy
import importlib.util
import json
import sys
from pathlib import Path


def prime_code(verl):
    folder = verl / "utils/reward_score/prime_code"
    spec = importlib.util.spec_from_file_location("prime_code", folder / "__init__.py",
                                                  submodule_search_locations=[str(folder)])
    module = importlib.util.module_from_spec(spec)
    sys.modules["prime_code"] = module
    spec.loader.exec_module(module)
    return module


def block(code):
    return f"Here it is:\n```python\n{code}\n```\nDone."


ADD = {"inputs": ["1 2\n", "3 4\n", "-1 1\n"], "outputs": ["3\n", "7\n", "0\n"]}
CALL = {"fn_name": "add", "inputs": ["1\n2", "[1]\n[2]"], "outputs": ["3", "[1, 2]"]}
FLOATS = {"inputs": ["3\n", "7\n"], "outputs": ["0.3333333333\n", "0.1428571428\n"]}
LINES = {"inputs": ["2\n"], "outputs": ["1\n2\n"]}
POWER = {"inputs": ["3 5 7\n", "2 10 1000\n"], "outputs": ["5\n", "24\n"]}
MANY = {"inputs": [f"{i}\n" for i in range(12)], "outputs": [f"{i}\n" for i in range(12)]}
CASES = [
    (block("a, b = map(int, input().split())\nprint(a + b)"), ADD),
    (block("a, b = map(int, input().split())\nprint(a - b)"), ADD),
    (block("a, b = map(int, input().split())\nprint(max(a + b, 3))"), ADD),
    ("a, b = map(int, input().split())\nprint(a + b)", ADD),
    (block("a, b = map(int, input().split())\nprint(a + b"), ADD),
    (block("raise ValueError('no')"), ADD),
    (block("import sys\nfor line in sys.stdin:\n    print(sum(map(int, line.split())))"), ADD),
    (block("def main():\n    a, b = map(int, input().split())\n    print(a + b)\n"
           "if __name__ == '__main__':\n    main()"), ADD),
    (block("while True: pass"), {"inputs": ["1 2\n"], "outputs": ["3\n"]}),
    ("no code at all, only words", ADD),
    (block("print(1)") + block("a, b = map(int, input().split())\nprint(a + b)"), ADD),
    (block("def add(a, b):\n    return a + b"), CALL),
    (block("class Solution:\n    def add(self, a, b):\n        return a + b"), CALL),
    (block("def add(a, b):\n    return 3"), CALL),
    (block("def sub(a, b):\n    return 3"), CALL),
    (block("def add(a, b):\n    return Counter()[a] + b + a"), CALL),
    (block("print(1 / int(input()))"), FLOATS),
    (block("print(round(1 / int(input()), 2))"), FLOATS),
    (block("n = int(input())\nfor i in range(n): print(i + 1)"), LINES),
    (block("n = int(input())\nfor i in range(n): print(' ', i + 1, ' ')\nprint()"), LINES),
    (block("print(1, 2)"), LINES),
    (block("print(input())"), MANY),
    (block("n = int(input())\nprint(n if n < 10 else 0)"), MANY),
    (block("n = int(input())\nprint(n if n < 5 else 0)"), MANY),
    (block("a, b, m = map(int, input().split())\nprint(pow(a, b, m))"), POWER),
    (block("a, b, m = map(int, stdin.readline().split())\nprint(pow(a, b, m) if m < maxsize else 0)"), POWER),
    (block("exec(compile('a, b, m = map(int, input().split())\\nprint(a ** b % m)', 'x', 'exec'))"), POWER),
    (block("class Solution:\n    def add(self, a, b):\n        return pow(a + b, 1, 7) if a == 1 else a + b"), CALL),
    (block("print(1)"), {"inputs": [], "outputs": []}),
]


def main():
    score = prime_code(Path(sys.argv[1])).compute_score
    out = Path(sys.argv[2] if len(sys.argv) > 2 else "tests/executor/rewards/verl_unit_tests.json")
    rows = []
    for response, truth in CASES:
        value, _ = score(response, json.dumps(copy.deepcopy(truth)), continuous=True)
        rows.append({"response": response, "truth": truth, "score": float(value)})
    out.write_text(json.dumps({"source": "verl 0.9.1", "cases": rows}, indent=1) + "\n")
    print([row["score"] for row in rows])


if __name__ == "__main__":
    main()
