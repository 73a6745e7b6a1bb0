#!/usr/bin/env python3
"""Kills PPO runs on four CPU ranks at random moments of saves and of steps, under TP2 x PP2 and under FSDP4.

usage: benchmarks/kill_matrix.py [--tessera build/release/cli/tessera] [--kills 100] [--layout tp2pp2 fsdp4]
                                 [--in save step] [--seed 7] [--save-freq 2] [-o FILE]

KILLS are for each layout and each place: 100 are 200 in saves and 200 in steps. scripts/kill_and_resume.py does
them and says what must hold after each. One line for each layout and place; FILE gets them all as JSON. Exit
status 1 where something did not hold; the runs are then kept. About five seconds a kill on two idle cores.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

LAYOUTS = {
    "tp2pp2": ["actor.tp=2", "actor.pp=2", "critic.tp=2", "critic.pp=2"],
    "fsdp4": ["actor.tp=1", "actor.pp=1", "actor.zero=3", "critic.tp=1", "critic.pp=1", "critic.zero=3"],
}
WORKLOAD = """version: 1
algorithm: ppo
prompts_per_step: 16
samples_per_prompt: 4
prompt_tokens: 8
response_tokens: {mean: 4, cv: 0, max: 4}
mini_batches: 2
epochs: 1
kl: reward
"""
ROOT = pathlib.Path(__file__).resolve().parent.parent
AGAIN = ROOT / "scripts" / "kill_and_resume.py"


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tessera", type=pathlib.Path, default="build/release/cli/tessera")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--layout", nargs="+", choices=LAYOUTS, default=list(LAYOUTS))
    parser.add_argument("--in", dest="where", nargs="+", choices=["save", "step"], default=["save", "step"])
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--save-freq", type=int, default=2)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    return parser.parse_args()


def called(words, folder):
    """What the program prints; the program ends with its messages where it fails."""
    ended = subprocess.run(list(map(str, words)), cwd=folder, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: {ended.stdout}{ended.stderr}")
    return ended.stdout


def torch_version():
    """Of the wheel in the environment that scripts/setup.sh makes."""
    venv = pathlib.Path(os.environ.get("TESSERA_VENV", ROOT / ".venv"))
    found = sorted(venv.glob("lib/python3*/site-packages/torch-*.dist-info"))
    return found[0].stem[len("torch-"):] if found else "unknown"


def make_inputs(tessera, layouts, folder):
    called([tessera, "init-model", "--model", "tiny-qwen2-digits", "--digits", "--seed", 1, "-o", "m"], folder)
    called([tessera, "make-data", "--task", "reverse", "--digits", 3, "--count", 512, "-o", "prompts.jsonl"], folder)
    (folder / "ppo.yaml").write_text(WORKLOAD)
    for layout in layouts:
        called([tessera, "plan", "--model", "m", "--cluster", "local-cpu", "--workload", "ppo.yaml", "--fix",
                "placement=colocated", *LAYOUTS[layout], "rollout.tp=2", "rollout.dp=2", "-o", layout + ".json"],
               folder)


def kills(options, tessera, layout, where, folder):
    """The report of one layout and place, or None where something did not hold."""
    name = f"{layout}-{where}"
    ended = subprocess.run(
        [sys.executable, AGAIN, "--run", name, "--kills", str(options.kills), "--in", where, "--seed",
         str(options.seed), "--save-freq", str(options.save_freq), "--report", name + "-report.json", "--",
         str(tessera), "run", layout + ".json", "--config", "ppo-digits", "--set",
         "data.train_files=[prompts.jsonl]"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(f"{layout}, {where}: {ended.stdout.strip()}", flush=True)
    if ended.returncode != 0:
        return None
    return {"layout": layout, "in": where, **json.loads((folder / (name + "-report.json")).read_text())}


def main():
    options = parse()
    tessera = options.tessera.resolve()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tessera-kill-matrix-"))
    make_inputs(tessera, options.layout, folder)
    figures = [kills(options, tessera, layout, where, folder) for layout in options.layout for where in options.where]
    if None in figures:
        sys.exit(f"the runs are in {folder}")
    shutil.rmtree(folder)
    if options.output is None:
        return
    result = {
        "what": "PPO on four CPU ranks of which all are killed (SIGKILL, with launcher and parent) at random moments "
                "and resumed: every checkpoint loaded, samples and model in the end those of a run nobody killed",
        "command": f"benchmarks/kill_matrix.py --kills {options.kills} --layout {' '.join(options.layout)} "
                   f"--in {' '.join(options.where)} --seed {options.seed} --save-freq {options.save_freq}",
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "device": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": {"tessera": called([tessera, "--version"], folder.parent).strip(), "torch": torch_version(),
                     "linux": platform.release()},
        "save_freq": options.save_freq,
        "kills": sum(figure["kills"] for figure in figures),
        "figures": figures,
    }
    options.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
