"""python3 -m tessera_trackers {mlflow,wandb} RUN: see --help."""
from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from . import run_folder

LOOK_S = 2.0  # between two looks at a run that is followed


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tessera_trackers",
        description="Sends the numbers of a run's steps to a tracker. Called again, it sends what "
        "has come since.",
        epilog="Exit codes: 0; 64 usage; 65 a file of the run is broken; 66 it is missing; "
        "69 the tracker, or its library, cannot be reached.")
    parser.add_argument("tracker", choices=["mlflow", "wandb"])
    parser.add_argument("run", type=Path, help="the folder of a run")
    parser.add_argument("--to", default="", metavar="TARGET",
                        help="mlflow: the address of its server (default MLFLOW_TRACKING_URI); "
                        "wandb: the folder for what `wandb sync` takes (default .)")
    parser.add_argument("--project", default="tessera", help="MLflow's experiment, wandb's project")
    parser.add_argument("--name", help="of the run there (default: its folder's)")
    parser.add_argument("--follow", action="store_true",
                        help="go on until the run ends (its lock is given back) or Ctrl-C")
    try:
        return parser.parse_args()
    except SystemExit as end:
        raise SystemExit(64 if end.code else 0) from None


def goes_on(folder: Path) -> bool:
    """Whether a process holds the run's lock."""
    import fcntl

    try:
        with (folder / "run.lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True


def send(tracker, folder: Path, follow: bool) -> int:
    """Sends what is there, then what comes; how many steps."""
    count, last, digest = 0, tracker.last, tracker.digest
    while True:
        alive = follow and goes_on(folder)  # asked before the last look, so that none is missed
        for step in run_folder.unsent(run_folder.steps(folder), last, digest):
            tracker.send(step)
            last, digest, count = step.number, step.digest, count + 1
        if not alive:
            return count
        time.sleep(LOOK_S)


def has_begun(folder: Path, follow: bool) -> bool:
    """Whether a first step is there; followed, after waiting for it as long as the run goes on."""
    while run_folder.identity(folder) is None:
        if not (follow and goes_on(folder)):
            return False
        time.sleep(LOOK_S)
    return True


def sent_run(asked: argparse.Namespace) -> str:
    """Sends what there is to be sent; what became of it, in words."""
    run_folder.steps(asked.run)  # nothing is begun for a run that cannot be read
    run_folder.settings(asked.run)
    if not has_begun(asked.run, asked.follow):
        return "no step so far"
    if asked.tracker == "mlflow":
        from .mlflow_tracker import MlflowTracker as Tracker
    else:
        from .wandb_tracker import WandbTracker as Tracker
    name = asked.name or asked.run.resolve().name
    tracker = Tracker(asked.run, asked.project, name, asked.to)
    try:
        done = f"{send(tracker, asked.run, asked.follow)} steps"
    except KeyboardInterrupt:
        done = "stopped"
    except run_folder.InputError:
        tracker.close()
        raise
    return f"{done}: {tracker.close()}"


def main() -> int:
    asked = arguments()
    if not (asked.run / "metrics.jsonl").exists():
        print(f"{asked.run}/metrics.jsonl: no such file; expected the folder of a run",
              file=sys.stderr)
        return 66
    try:
        print(sent_run(asked))
    except run_folder.InputError as error:
        print(error, file=sys.stderr)
        return 65
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # of the tracker's library, which has many
        print(f"{asked.tracker}: {error}", file=sys.stderr)
        return 69
    return 0


if __name__ == "__main__":
    sys.exit(main())
