#!/usr/bin/env python3
"""Kills all ranks of a run at random moments and lets it go on, until it ends by itself.

usage: kill_and_resume.py --run RUN [--kills N] [--in any|save|step] [--seed S] [--save-freq K]
                          [--report FILE] -- tessera run PLAN --config ...

Every attempt is the command with --resume in one folder. SIGKILL goes to the ranks, the launcher
and their parent at once, as when a machine loses its power. After each kill the next attempt must
go on from the newest folder global_step_N, which therefore loads, at most save-freq steps behind
the last step that was finished. After the last kill the run is left alone for two more steps; its
samples and its model must then equal, bit for bit, those of a run of as many steps that nobody
killed (RUN-whole). Exit status 1 and a line for what did not hold; FILE gets the figures as JSON.
"""
import argparse
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--run", type=pathlib.Path, required=True)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--in", dest="where", choices=["any", "save", "step"], default="any")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save-freq", type=int, default=2)
    parser.add_argument("--report", type=pathlib.Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    options.command = [word for word in options.command if word != "--"]
    return options


def descendants(pid):
    """The process and all below it, parents first."""
    found = [pid]
    for process in found:
        for task in pathlib.Path(f"/proc/{process}/task").glob("*/children"):
            try:
                found += [int(child) for child in task.read_text().split()]
            except OSError:
                pass
    return found


def kill_all(process):
    """Nobody is left to clean up after anybody."""
    everyone = descendants(process.pid)
    for pid in everyone:
        try:
            os.kill(pid, signal.SIGSTOP)
        except OSError:
            pass
    for pid in descendants(process.pid) + everyone:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    process.wait()


def newest(run):
    steps = [int(path.name[len("global_step_"):]) for path in
             (run / "checkpoints").glob("global_step_*")]
    return max(steps, default=0)


def finished_steps(run):
    try:
        lines = (run / "metrics.jsonl").read_text().splitlines()
    except OSError:
        return 0
    steps = [0]
    for line in lines:
        try:
            steps.append(json.loads(line)["step"])
        except ValueError:
            pass  # the line that was being written
    return max(steps)


def saving(run):
    return any((run / "checkpoints").glob(".global_step_*.partial"))


def await_moment(options, process, rng, step, log_path):
    """Waits for a random moment of a save or of a step after `step`, once in ten of the start."""
    wanted = options.where if options.where != "any" else rng.choice(["save", "step"])
    if rng.random() < 0.1:
        time.sleep(rng.random() * 3)
        return saving(options.run)
    # By then what an earlier kill left is gone: a folder that is being written, lines of lost steps.
    while process.poll() is None and "[Start]" not in log_path.read_text():
        time.sleep(0.01)
    while process.poll() is None and finished_steps(options.run) <= step:
        time.sleep(0.005)
    if wanted == "save":
        until = time.monotonic() + 20
        while process.poll() is None and not saving(options.run) and time.monotonic() < until:
            time.sleep(0.0002)
        time.sleep(rng.random() * 0.03)
    else:
        time.sleep(rng.random() * 1.5)
    return saving(options.run)


def attempt(options, steps, log):
    line = options.command + ["--set", f"trainer.save_freq={options.save_freq}",
                              "--set", "trainer.max_actor_ckpt_to_keep=2",
                              "--set", f"trainer.total_training_steps={steps}",
                              "--resume", "-o", str(options.run)]
    return subprocess.Popen(line, stdout=log, stderr=subprocess.STDOUT)


def same_as_whole(options, steps):
    """Whether a run that nobody kills has the same samples and the same model."""
    whole = pathlib.Path(str(options.run) + "-whole")
    line = options.command + ["--set", f"trainer.total_training_steps={steps}", "-o", str(whole)]
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for name in ("samples.jsonl", "hf/model.safetensors"):
        if (options.run / name).read_bytes() != (whole / name).read_bytes():
            sys.exit(f"{options.run / name} differs from {whole / name}")


def check_resumed(options, text, saved, done, killed):
    """What the attempt says of where it goes on from, against what was on disk before it."""
    if "[Resume] not from" in text:
        return "a checkpoint did not load:\n" + text
    found = re.search(r"\[Resume\] from step (\d+)", text)
    if killed and found is None:
        return None  # in its start
    if saved > 0 and (found is None or int(found.group(1)) != saved):
        return f"did not go on from step {saved}:\n{text}"
    if done - saved > options.save_freq:
        return f"{done} steps were finished, and the newest checkpoint is of step {saved}"
    return None


def main():
    options = parse()
    rng = random.Random(options.seed)
    log_path = pathlib.Path(str(options.run) + ".log")
    began = time.monotonic()
    kills = in_save = 0
    lost = []  # steps after each kill
    while True:
        saved, done = newest(options.run), finished_steps(options.run)
        lost.append(done - saved)
        steps = 10**9 if kills < options.kills else saved + 2
        with open(log_path, "w") as log:
            process = attempt(options, steps, log)
            if kills < options.kills:
                in_save += await_moment(options, process, rng, saved, log_path)
            else:
                process.wait()
        ended = process.poll()
        if ended is None:
            kill_all(process)
        text = log_path.read_text()
        wrong = check_resumed(options, text, saved, done, killed=ended is None)
        if ended not in (None, 0):
            wrong = f"ended with code {ended}:\n{text}"
        if wrong:
            sys.exit(f"after {kills} kills: {wrong}")
        if ended == 0:
            break
        kills += 1
    same_as_whole(options, steps)
    if options.report:
        options.report.write_text(json.dumps(
            {"kills": kills, "met_a_save": in_save, "steps": steps, "most_steps_lost": max(lost),
             "kills_by_steps_lost": {str(n): lost[1:].count(n) for n in sorted(set(lost[1:]))},
             "seconds": round(time.monotonic() - began, 1)}))
    print(f"{kills} kills, {in_save} of them in a save, in {steps} steps; at most {max(lost)} were lost, "
          "and samples and model are those of a run that was never killed")


if __name__ == "__main__":
    main()
