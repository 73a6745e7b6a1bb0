"""A run's folder, as it is read for a tracker: what was run, and the numbers of its steps.

Nothing here writes. Numbers have the names and units of metrics.jsonl; times are Unix seconds.
"""
from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path


class InputError(Exception):
    """What is wrong with a file: the file, the place, what was found, what was expected."""


@dataclass(frozen=True)
class Step:
    """One line of metrics.jsonl."""

    number: int
    numbers: dict[str, float]
    digest: str  # of the line
    time: float  # when the step ended


def settings(folder: Path) -> dict[str, str]:
    """What was run, as words: run.yaml's keys joined by dots, and of the plan what tells runs apart."""
    import yaml

    found: dict[str, str] = {}
    config = folder / "run.yaml"
    if config.exists():
        try:
            keys = yaml.safe_load(config.read_bytes()) or {}
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError, OSError) as error:
            raise InputError(f"{config}: {error}; expected YAML") from error
        if not isinstance(keys, dict):
            raise InputError(f"{config}: found {type(keys).__name__}, expected keys and values")
        _flatten("", keys, found)
    path = folder / "plan.json"
    if path.exists():
        plan = _json_of(path, path.read_bytes(), "the file")
        for key in ("engine", "models", "roles", "prediction"):
            _flatten(f"plan.{key}", plan.get(key), found, depth=4)
    return found


def identity(folder: Path) -> str | None:
    """Sixteen hex digits that are a run's own, in whichever folder it lies and however often it was
    resumed: of its first step, whose seconds are written to the last digit. None before that."""
    with (folder / "metrics.jsonl").open("rb") as lines:
        first = lines.readline()
    return hashlib.sha256(first).hexdigest()[:16] if first.endswith(b"\n") else None


def steps(folder: Path) -> list[Step]:
    """The steps that are written whole, in the file's order; of a step that stands twice the last.

    A line without its end is being written and is left for later. No line has a time: the last one
    is as old as the file, each one before it by the next step's seconds older.
    """
    path = folder / "metrics.jsonl"
    try:
        data, end = path.read_bytes(), path.stat().st_mtime
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; expected a run's numbers") from error
    read: dict[int, tuple[dict[str, float], str]] = {}
    for number, line in enumerate(data.split(b"\n")[:-1], start=1):
        if not line.strip():
            continue
        place = f"line {number}"
        entry = _json_of(path, line, place)
        step, numbers = entry.get("step"), entry.get("data")
        if not isinstance(step, int) or isinstance(step, bool) or not isinstance(numbers, dict):
            raise InputError(f'{path}: {place}: expected {{"step": number, "data": {{...}}}}')
        try:
            kept = {k: float(v) for k, v in numbers.items()
                    if isinstance(v, (int, float)) and not isinstance(v, bool)}
        except OverflowError as error:
            raise InputError(f"{path}: {place}: {error}; expected numbers") from error
        read.pop(step, None)
        read[step] = kept, hashlib.sha256(line).hexdigest()[:16]
    found: list[Step] = []
    for step, (numbers, digest) in reversed(read.items()):
        found.append(Step(step, numbers, digest, end))
        took = numbers.get("timing_s/step", 0.0)
        end -= max(0.0, took) if math.isfinite(took) else 0.0
    return found[::-1]


def unsent(all_steps: list[Step], last: int | None, digest: str) -> list[Step]:
    """The steps behind the one that was sent last.

    Where the run has taken that one back (a rule rolled back, a resume began before it), all of
    them: which others were made again, nobody knows.
    """
    if last is None:
        return all_steps
    for at, step in enumerate(all_steps):
        if step.number == last and step.digest == digest:
            return all_steps[at + 1:]
    return all_steps


def _json_of(path: Path, text: str | bytes, place: str) -> dict:
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: {place}: {error}; expected JSON") from error
    if not isinstance(entry, dict):
        raise InputError(f"{path}: {place}: found {type(entry).__name__}, expected an object")
    return entry


def _flatten(prefix: str, value, into: dict[str, str], depth: int = 16) -> None:
    if depth > 0 and isinstance(value, dict):
        for key, inner in value.items():
            _flatten(f"{prefix}.{key}" if prefix else str(key), inner, into, depth - 1)
    elif value is not None:
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        into[prefix] = text if len(text) <= 500 else text[:497] + "..."
