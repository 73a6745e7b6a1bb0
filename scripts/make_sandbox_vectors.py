#!/usr/bin/env python3
"""Makes tests/executor/rewards/verl_sandbox.json: what verl 0.9.1 itself asks a sandbox service about responses,
and the scores that it makes of the replies (utils/reward_score/sandbox_fusion). The service is the tests' own,
which runs the code.

usage: python3 scripts/make_sandbox_vectors.py VERL_FOLDER [FILE]
VERL_FOLDER is the folder of the installed package (site-packages/verl); `requests` must be installed.
"""
import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

ADD = "a, b = map(int, input().split())\nprint(a + b)\n"
SUM = {"inputs": ["1 2", "3 4", "-1 1", "10 20"], "outputs": ["3", "7", "0", "31"]}


def python(code):
    return f"Here it is:\n```python\n{code}```\ndone"


def cases():
    call = {"fn_name": "f", "inputs": ["1\n2", "3\n4"], "outputs": ["3", "8"]}
    echo = "import sys\nprint(sys.stdin.read(), end='')\n"
    yield "no code at all", SUM
    yield python(ADD), SUM
    yield python(ADD), json.dumps(SUM)
    yield "```\n" + ADD + "```", SUM
    yield "```py\n" + ADD + "```", SUM
    yield "```python3\n" + ADD + "```", SUM
    yield "``` \n" + ADD + "```", SUM
    yield "```print(3)```", SUM
    yield "```python\n" + ADD, SUM
    yield python("1 / 0\n") + python(ADD), SUM
    yield python("1 / 0\n"), SUM
    yield python("def f(:\n"), SUM
    yield python("print('4')\nprint()\n"), {"inputs": ["", "", ""], "outputs": ["4", "4\n\n\n", "\n4"]}
    yield python(echo), {"inputs": ["ä ß", "", "a\n"], "outputs": ["ä ß", "", "a"]}
    yield python(echo), {"inputs": [5, None], "outputs": [5, None]}
    yield python("print('7')\n"), {"inputs": [""] * 14, "outputs": ["7"] * 9 + ["8"] + ["7"] * 4}
    yield python("print('7')\n"), {"inputs": ["", "1"], "outputs": ["7"]}
    yield python(ADD), {"inputs": [], "outputs": []}
    yield python(ADD), {"inputs": ["1 2"]}
    yield python(ADD), "no JSON"
    yield python(ADD), "[1, 2]"
    yield python("# COMPILE ERROR\n"), SUM
    yield python("import time\ntime.sleep(30)\n"), {"inputs": [""], "outputs": ["x"]}
    yield python("def f(a, b):\n    return a + b\n"), call
    yield python("class Solution:\n    def f(self, a, b):\n        return a + b\n"), call
    yield python("def g(a, b):\n    return a + b\n"), call
    yield python("def f(a, b):\n    return [a, None, {'b': b}]\n"), call | {
        "outputs": ['[1, null, {"b": 2}]', '[3, null, {"b": 4}]']}
    yield python("def f(a, b):\n    return a < b\n"), call | {"outputs": ["true", "false"]}
    yield python("def f(a, b):\n    return sqrt(a * a) + len(Counter([b])) - 1.0 + b\n"), call | {
        "outputs": ["3.0", "7.0"]}
    yield python("def f(a):\n    return a\n"), {"fn_name": "f", "inputs": ['"text"', "not json", "[1]"],
                                                "outputs": ["text", None, "[1]"]}
    yield python("def f(a):\n    raise ValueError(a)\n"), {"fn_name": "f", "inputs": ["1", "2"], "outputs": ["", None]}
    yield python("def f(a, b):\n    return a * b\n"), {"assert_case": ["assert f(2, 3) == 6", "assert f(1, 1) == 2"]}
    yield python("def f(a):\n    return a\n"), {"assert_case": ["assert f(2) == 2"], "inputs": [""], "outputs": ["x"]}
    yield python("def f(a):\n    return a\n"), {"assert_case": ["assert f(2) == 2"], "inputs": ["", ""],
                                                "outputs": [None, None]}
    yield python("def f():\n    return 4\n"), {"fn_name": "f", "assert_case": ["assert f() == 4", "assert f() == 5"],
                                                "inputs": ["", ""], "outputs": ["4", "4"]}


def main():
    verl = Path(sys.argv[1])
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "tests/executor/rewards/verl_sandbox.json"
    folder = verl / "utils/reward_score/sandbox_fusion"
    spec = importlib.util.spec_from_file_location("sandbox_fusion", folder / "__init__.py",
                                                  submodule_search_locations=[str(folder)])
    module = importlib.util.module_from_spec(spec)
    sys.modules["sandbox_fusion"] = module
    spec.loader.exec_module(module)
    vectors = []
    with tempfile.TemporaryDirectory() as place:
        log = Path(place) / "log"
        service = subprocess.Popen([sys.executable, ROOT / "tests/executor/rewards/fake_sandbox.py", log],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        url = f"http://127.0.0.1:{int(service.stdout.readline())}/run_code"
        for completion, truth in cases():
            before = len(log.read_text().splitlines())
            given = json.loads(json.dumps(truth))  # verl adds keys to it
            score, _ = module.compute_score(url, None, 1024, completion, given, continuous=True, timeout=2)
            asked = [json.loads(line) for line in log.read_text().splitlines()[before:]]
            vectors.append({"completion": completion, "truth": truth, "score": score, "asked": asked})
        service.communicate()
    target.write_text(json.dumps({"verl": "0.9.1", "timeout_s": 2, "cases": vectors}, indent=1) + "\n")
    print(f"{len(vectors)} responses, {sum(len(v['asked']) for v in vectors)} requests -> {target}")


main()
