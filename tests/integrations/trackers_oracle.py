"""Sends runs to MLflow and wandb as users do, and reads what arrived by their own libraries.

usage: trackers_oracle.py SOURCES FOLDER; prints a line per case, "ok NAME" or "wrong NAME: why".
"""
import fcntl
import json
import os
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

SOURCES, FOLDER = Path(sys.argv[1]), Path(sys.argv[2])
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCES / "integrations/trackers"),
               "MLFLOW_ALLOW_FILE_STORE": "true", "WANDB_MODE": "offline",
               "WANDB_ERROR_REPORTING": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
os.environ.update(ENVIRONMENT)
STORE = f"file://{FOLDER}/mlruns"


def words(tracker, run, *more):
    target = STORE if tracker == "mlflow" else str(FOLDER / f"kept-{run.name}")
    return [sys.executable, "-m", "tessera_trackers", tracker, str(run), "--to", target, *more]


def call(tracker, run, *more):
    return subprocess.run(words(tracker, run, *more), capture_output=True, text=True,
                          env=ENVIRONMENT, timeout=120)


def check(name, condition, why=""):
    print(f"ok {name}" if condition else f"wrong {name}: {why}", flush=True)


def written(run, tracker):
    """What metrics.jsonl says: {(metric, step): value}; MLflow's names have no @."""
    lines = (run / "metrics.jsonl").read_text().splitlines()
    entries = [json.loads(line) for line in lines if line.strip()]
    return {(key.replace("@", "_at_") if tracker == "mlflow" else key, entry["step"]): float(value)
            for entry in entries for key, value in entry["data"].items()}


def in_mlflow(run):
    """What MLflow's own client finds of the newest value of each metric and step."""
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=STORE)
    experiment = client.get_experiment_by_name("tessera").experiment_id
    found = [r for r in client.search_runs([experiment]) if r.info.run_name == run.name]
    assert len(found) == 1, f"{len(found)} runs of this name"
    values = {}
    for key in found[0].data.metrics:
        for metric in client.get_metric_history(found[0].info.run_id, key):
            values[key, metric.step] = metric.value
    return values, found[0]


def records(path):
    """The records of a file of wandb's: LevelDB's log format behind seven bytes (":W&B", version)."""
    data = path.read_bytes()
    assert data[:4] == b":W&B", data[:7]
    at, parts = 7, b""
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        parts += data[at + 7:at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # a whole record, or the last part of one
            yield parts
            parts = b""


def in_wandb(run):
    """What the offline runs of this folder hold, in their order, by wandb's own messages."""
    from wandb.proto import wandb_internal_pb2

    values, ids = {}, set()
    for path in sorted((FOLDER / f"kept-{run.name}").glob("wandb/offline-run-*/*.wandb"),
                       key=lambda each: each.stat().st_mtime_ns):
        for data in records(path):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            if record.WhichOneof("record_type") == "run":
                ids.add(record.run.run_id)
            if record.WhichOneof("record_type") != "history":
                continue
            row = {item.key or "/".join(item.nested_key): json.loads(item.value_json)
                   for item in record.history.item}
            for key, value in row.items():
                if not key.startswith("_"):
                    values[key, row["training/global_step"]] = float(value)
    return values, ids


def same(found, expected):
    keys = set(expected) | {k for k in found if k[0] != "training/global_step"}
    wrong = [k for k in sorted(keys) if struct.pack("d", found.get(k, float("nan")))
             != struct.pack("d", expected.get(k, float("nan")))]
    return not wrong, f"{len(wrong)} of {len(keys)} differ, the first {wrong[:1]}"


def line(step, **numbers):
    return json.dumps({"step": step, "data": numbers}) + "\n"


def run_of(name, *lines):
    run = FOLDER / name
    run.mkdir(parents=True)
    (run / "run.yaml").write_text("trainer:\n  total_training_steps: 5\nalgorithm: {adv_estimator: grpo}\n")
    (run / "metrics.jsonl").write_text("".join(lines))
    return run


def all_arrive():
    run = FOLDER / "whole"
    shutil.copytree(SOURCES / "tests/gui/data/run", run)
    (run / "run.yaml").write_text("data: {train@files: [a.jsonl], since: 2026-01-02}\n")
    with (run / "metrics.jsonl").open("a") as lines:
        lines.write(line(900, **{"val-core/openai/gsm8k/reward/mean@8": 0.1 + 0.2}))
    for tracker, read in (("mlflow", in_mlflow), ("wandb", in_wandb)):
        done = call(tracker, run)
        values, _ = read(run)
        check(f"{tracker}: exit", done.returncode == 0, done.stderr[-500:])
        check(f"{tracker}: every number, bit for bit", *same(values, written(run, tracker)))
        check(f"{tracker}: something arrived", len(values) > 20, f"{len(values)} numbers")


def later_steps_alone():
    third = 0.1 + 0.2
    run = run_of("later", line(1, **{"actor/lr": 1e-6, "timing_s/step": 2}))
    for tracker, read in (("mlflow", in_mlflow), ("wandb", in_wandb)):
        (run / "metrics.jsonl").write_text(line(1, **{"actor/lr": 1e-6, "timing_s/step": 2}))
        first = call(tracker, run)
        with (run / "metrics.jsonl").open("a") as lines:
            lines.write(line(2, **{"actor/lr": third, "timing_s/step": 4}))
            lines.write('{"step": 3, "data": {"actor/lr"')  # still being written
        second, third_call = call(tracker, run), call(tracker, run)
        said = [each.stdout.split(" steps")[0] for each in (first, second, third_call)]
        check(f"{tracker}: each step once", said == ["1", "1", "0"], f"{said} {second.stderr[-300:]}")
        values, about = read(run)
        check(f"{tracker}: bits of a sum", values.get(("actor/lr", 2)) == third, values)
        if tracker == "mlflow":
            check("mlflow: parameters", about.data.params.get("algorithm.adv_estimator") == "grpo",
                  about.data.params)
        else:
            check("wandb: one run for the server", len(about) == 1, about)


def steps_taken_back():
    start = line(1, x=1), line(2, x=2), line(3, x=3)
    for tracker, read in (("mlflow", in_mlflow), ("wandb", in_wandb)):
        run = run_of(f"back-{tracker}", *start)
        call(tracker, run)
        (run / "metrics.jsonl").write_text(start[0] + line(2, x=20))
        call(tracker, run)
        check(f"{tracker}: a step that was made again", read(run)[0].get(("x", 2)) == 20,
              read(run)[0])


def one_run_from_before_its_first_step_to_behind_a_resume():
    for tracker, read in (("mlflow", in_mlflow), ("wandb", in_wandb)):
        run = run_of(f"early-{tracker}")
        done = call(tracker, run)
        check(f"{tracker}: before the first step", "no step so far" in done.stdout, done.stdout)
        (run / "metrics.jsonl").write_text(line(1, early=1 if tracker == "mlflow" else 2))
        call(tracker, run)
        (run / "run.yaml").write_text("trainer: {resume_mode: auto}\n")
        with (run / "metrics.jsonl").open("a") as lines:
            lines.write(line(2, x=2))
        done = call(tracker, run)
        _, about = read(run)
        check(f"{tracker}: a resumed run is the same one",
              done.stdout.startswith("1 steps") and (tracker == "mlflow" or len(about) == 1),
              done.stdout)


def a_cut_state_is_named():
    run = run_of("state", line(1, s=1))
    call("wandb", run)
    (state,) = (FOLDER / "kept-state").glob("tessera-*.json")
    state.write_text("")
    done = call("wandb", run)
    check("wandb: a cut file of state", done.returncode == 65 and str(state) in done.stderr,
          done.stderr[-300:])


def followed():
    run = run_of("followed", line(1, x=1, y=1))
    with (run / "run.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        program = subprocess.Popen(words("mlflow", run, "--follow"), env=ENVIRONMENT, text=True,
                                   stdout=subprocess.PIPE)
        time.sleep(4)
        with (run / "metrics.jsonl").open("a") as lines:
            lines.write(line(2, x=2))
        check("follow: it waits for the run", program.poll() is None)
    out = program.communicate(timeout=60)[0]
    check("follow: the run's end is its end", out.startswith("2 steps"), out)
    check("follow: both steps", in_mlflow(run)[0] == {("x", 1): 1, ("y", 1): 1, ("x", 2): 2})


def refused():
    broken = run_of("broken", line(1, x=1), "{no json}\n")
    done = call("mlflow", broken)
    check("a broken line", done.returncode == 65 and "line 2" in done.stderr, done.stderr[-300:])
    done = call("mlflow", FOLDER / "nothing")
    check("no run", done.returncode == 66 and "no such file" in done.stderr, done.stderr[-300:])
    done = call("nonsense", broken)
    check("no such tracker", done.returncode == 64, done.returncode)
    for name, bad, where in (("digits", '{"step": 1, "data": {"x": 1%s}}\n' % ("0" * 400), "line 1"),
                             ("deep", "[" * 100000 + "\n", "line 1")):
        done = call("mlflow", run_of(name, bad))
        check(f"broken: {name}", done.returncode == 65 and where in done.stderr, done.stderr[-300:])
    listed = run_of("listed", line(1, x=7))
    (listed / "run.yaml").write_text("- a\n")
    done = call("mlflow", listed)
    check("broken: run.yaml", done.returncode == 65 and "run.yaml" in done.stderr, done.stderr[-300:])
    shape = run_of("shape", '{"step": "one", "data": {}}\n')
    done = call("wandb", shape)
    check("a step without a number", done.returncode == 65 and "line 1" in done.stderr, done.stderr)
    unreachable = subprocess.run(
        [sys.executable, "-m", "tessera_trackers", "mlflow", str(run_of("far", line(1, x=1))), "--to",
         "http://127.0.0.1:9"], capture_output=True, text=True, timeout=120,
        env={**ENVIRONMENT, "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"})
    check("a server that is not there", unreachable.returncode == 69, unreachable.stderr[-300:])


for case in (all_arrive, later_steps_alone, steps_taken_back, a_cut_state_is_named, followed, refused,
             one_run_from_before_its_first_step_to_behind_a_resume):
    case()
