#!/usr/bin/env python3
"""Imports every RL script of a verl checkout and counts what is read and what is refused.

    python3 scripts/import_examples.py VERL [--program build/dev/cli/tessera] [--cluster h800-64]

VERL is a folder that holds `examples`. A script is one of RL where it starts one of verl's trainers
of RL (main_ppo and what follows it). Each is read as `tessera import FILE --cluster CLUSTER` reads
it, with the settings that it has by itself. One line each: `accepted`, `too large` (read, but more
than the cluster's memory: by how much) or `refused` with the reason; then the counts. Exit code 0.
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import tempfile

TRAINERS = re.compile(r"verl\.trainer\.main_ppo|main_ppo|one_step_off_policy|fully_async|main_generation")
NOT_RL = re.compile(r"sft_trainer|main_generation")


def scripts_of(verl):
    for script in sorted((verl / "examples").rglob("*.sh")):
        text = script.read_text(errors="replace")
        if TRAINERS.search(text) and not NOT_RL.search(text):
            yield script


def judged(program, cluster, script, plan):
    done = subprocess.run([program, "import", str(script), "--cluster", cluster, "-o", str(plan)],
                          capture_output=True, text=True, timeout=600)
    if done.returncode == 0:
        return "accepted", ""
    told = [line for line in done.stderr.splitlines() if line.strip()]
    if done.returncode == 2:
        over = [line for line in told + done.stdout.splitlines() if "needs" in line or "GiB" in line]
        return "too large", over[0].strip() if over else ""
    errors = [line for line in told if ": error" in line or "expected" in line] or told
    return "refused", errors[0].strip() if errors else f"exit code {done.returncode}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("verl", type=pathlib.Path)
    parser.add_argument("--program", default="build/dev/cli/tessera")
    parser.add_argument("--cluster", default="h800-64")
    parser.add_argument("--json", type=pathlib.Path, help="write the outcomes there as well")
    arguments = parser.parse_args()
    outcomes = {}
    with tempfile.TemporaryDirectory() as folder:
        for script in scripts_of(arguments.verl):
            name = str(script.relative_to(arguments.verl))
            outcomes[name] = judged(arguments.program, arguments.cluster, script,
                                    pathlib.Path(folder) / "plan.json")
            print(f"{outcomes[name][0]:10} {name}  {outcomes[name][1]}", flush=True)
    counts = collections.Counter(kind for kind, _ in outcomes.values())
    print(f"{len(outcomes)} scripts: " + ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())))
    if arguments.json:
        arguments.json.write_text(json.dumps(outcomes, indent=1) + "\n")


if __name__ == "__main__":
    main()
