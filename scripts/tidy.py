#!/usr/bin/env python3
"""Runs clang-tidy (checks: .clang-tidy) over every source file that a build folder compiles.

Most of what clang-tidy costs goes into the headers of the standard library, Qt and torch, which it
walks through again for each source. Sources of one top folder are therefore checked in units that
include many of them (cmake/unity_groups.py says which can stand together); a source that does not
compile beside the others all the same is checked apart. A unit's outcome is kept, keyed by the
contents of all that it reads from this repository, the command that checks it, .clang-tidy and
clang-tidy's version, so that a second run checks only what changed. scripts/tidy_clean.txt has the
keys of the units without findings: with it a fresh clone, too, checks only what changed since.

usage: tidy.py [--build build/dev] [--jobs N] [--dry-run] [--record] [FOLDER...]
  --build    a configured build folder (its compile_commands.json is read)
  --jobs     units checked at a time (default: the processors)
  --dry-run  list the units and whether each is known, check nothing
  --record   write tidy_clean.txt anew when the whole tree has no findings
  FOLDER     only sources below these folders
Findings are printed as file:line:column: text [check]. Exit status: 0 without findings, 1 with
findings, 2 when something is missing.
environment: TESSERA_TIDY (default clang-tidy-16), XDG_CACHE_HOME (default ~/.cache).
"""
import argparse
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "cmake"))
import unity_groups  # noqa: E402, which sources go together in builds, too

TIDY = os.environ.get("TESSERA_TIDY", "clang-tidy-16")
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
CLEAN = ROOT / "scripts/tidy_clean.txt"
MOST_SOURCES = 24  # in a unit: bounds its memory (1.5 GB with torch) and what an edit costs
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
# Headers that take clang-tidy 5 to 30 s: sources that include one stand first, hence together.
LARGE = re.compile(r"^\s*#\s*include\s*<(?:Eigen|boost|rapidcheck|CLI|valijson|nlohmann/json.hpp)",
                   re.MULTILINE)
# Beside .clang-tidy's. Units include sources; and in torch's headers the second check takes as long
# as all others together.
NEVER, NOT_WITH_TORCH = "-bugprone-suspicious-include", ",-performance-unnecessary-value-param"
FINDING = re.compile(r"^(/[^:]+):(\d+):(\d+): (?:warning|error): (.*)$")
# Of use to gcc alone, or of none without code being made.
DROPPED = {"-Winvalid-pch", "-fpch-preprocess", "-Wno-error=invalid-pch", "-Wno-restrict",
           "-Werror"}
TAKES_VALUE = {"-isystem", "-I", "-D", "-include", "-o", "-c"}


@dataclasses.dataclass(frozen=True)
class Unit:
    """Sources that are checked together, with the flags of all of them."""

    folder: str
    sources: tuple  # of pathlib.Path below ROOT
    flags: tuple


def flags_of(command: str) -> list:
    """A compile command's flags as groups (a flag with its value), without the compiler, the
    source, the output and precompiled headers."""
    words, groups = shlex.split(command), []
    while words and not words[0].startswith("-"):  # the compiler, and what caches its outcomes
        words.pop(0)
    while words:
        taken = 2 if words[0] in TAKES_VALUE else 1
        group, words = tuple(words[:taken]), words[taken:]
        if group[0] not in DROPPED | {"-include", "-o", "-c"}:
            groups.append(group)
    return groups


def kind_of(groups: list) -> str:
    """Which large headers the flags can reach: sources of one kind share a unit."""
    text = " ".join(word for group in groups for word in group)
    return "torch" if "torch/include" in text else "qt" if "QT_CORE_LIB" in text else "plain"


def sources_of(build: pathlib.Path, folders: list) -> dict:
    """(top folder, kind) -> {source: flag groups} for the repository's own sources."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["file"])
        if not source.is_relative_to(ROOT) or source.is_relative_to(build):
            continue
        name = source.relative_to(ROOT)
        if folders and not any(name.is_relative_to(folder) for folder in folders):
            continue
        groups = flags_of(entry["command"])
        found.setdefault((name.parts[0], kind_of(groups)), {})[name] = groups
    return found


def with_torch(unit: Unit) -> bool:
    return "torch/include" in " ".join(unit.flags)


def read(name: pathlib.Path) -> str:
    return (ROOT / name).read_text()


def units_of(found: dict) -> list:
    units = []
    for (folder, _), sources in sorted(found.items()):
        small_last = sorted(sources, key=lambda name: (not LARGE.search(read(name)), name))
        paths = [str(ROOT / name) for name in small_last]
        for part in unity_groups.groups_of(paths, MOST_SOURCES):
            names = tuple(pathlib.Path(path).relative_to(ROOT) for path in part)
            # A macro that libraries define differently (a path) has one of its values.
            groups = {group[0].split("=")[0] if group[0].startswith("-D") else group: group
                      for name in names for group in sources[name]}
            flags = tuple(word for group in groups.values() for word in group)
            units.append(Unit(folder, names, flags))
    return units


def read_with_headers(sources: tuple, texts: dict) -> list:
    """The sources and every repository file that they include, directly or not, sorted.
    texts: file -> (contents, files included), filled here."""
    seen, waiting = set(), list(sources)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name not in texts:
            text = read(name)
            paths = INCLUDE.findall(text)
            beside = [pathlib.Path(os.path.normpath(name.parent / path)) for path in paths]
            below = [pathlib.Path(path) for path in paths]
            texts[name] = text, [path for path in beside + below if (ROOT / path).is_file()]
        waiting += texts[name][1]
    return sorted(seen)


def command_of(unit: Unit, together: pathlib.Path) -> list:
    """To clang-tidy the sources are headers of the unit: it must be told to report on them."""
    folders = "|".join(sorted(path.name for path in ROOT.iterdir() if path.is_dir()
                              and path.name != "build" and not path.name.startswith(".")))
    return [TIDY, "--quiet", f"--checks={NEVER}{NOT_WITH_TORCH if with_torch(unit) else ''}",
            f"--header-filter=^{re.escape(str(ROOT))}/({folders})/", str(together), "--",
            *unit.flags, "-w"]


def key_of(unit: Unit, version: str, texts: dict) -> str:
    """Headers from outside the repository are told apart by their paths alone."""
    digest = hashlib.sha256()
    for part in (version, (ROOT / ".clang-tidy").read_text()):
        digest.update(part.encode() + b"\0")
    for word in command_of(unit, pathlib.Path("together.cc")):
        for root in (re.escape(str(ROOT)), str(ROOT)):
            word = word.replace(root, "")
        digest.update(word.encode() + b"\0")
    for name in unit.sources:
        digest.update(str(name).encode() + b"\0")
    for name in read_with_headers(unit.sources, texts):
        digest.update(f"{name}\0{texts[name][0]}\0".encode())
    return digest.hexdigest()


def check(unit: Unit, build: pathlib.Path, key: str) -> dict:
    """Runs clang-tidy over one unit. Returns {"findings": [text]} or, when sources of it do not
    compile together, {"apart": [source]}: those that must go to another unit."""
    work = build / "tidy"
    work.mkdir(exist_ok=True)
    together = work / f"{key}.cc"
    together.write_text("".join(f'#include "{ROOT / name}"\n' for name in unit.sources))
    run = subprocess.run(command_of(unit, together), cwd=ROOT, capture_output=True, text=True,
                         check=False)
    together.unlink()
    findings, apart = [], []
    for line in run.stdout.splitlines():
        match = FINDING.match(line)
        if not match:
            continue
        path = pathlib.Path(os.path.normpath(match[1]))
        name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        findings.append(f"{name}:{match[2]}:{match[3]}: {match[4]}")
        if "[clang-diagnostic-error" in match[4]:
            apart.append(name if name in unit.sources else unit.sources[-1])
    if apart and len(unit.sources) > 1:
        # The first source stays, so that every split makes both parts smaller.
        return {"apart": sorted({str(name) for name in apart} - {str(unit.sources[0])})
                or [str(unit.sources[-1])]}
    if run.returncode != 0 and not findings:
        findings = [f"{unit.sources[0]}:1:1: clang-tidy failed: {run.stderr.strip()[-2000:]}"]
    return {"findings": findings}


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def record_of(found: dict, texts: dict) -> list:
    """The lines of tidy_clean.txt: digest and name of .clang-tidy and of all files that are read."""
    sources = [name for group in found.values() for name in group]
    files = read_with_headers(tuple(sources), texts)
    lines = [f"{digest_of((ROOT / '.clang-tidy').read_text())} .clang-tidy"]
    return lines + [f"{digest_of(texts[name][0])} {name}" for name in files]


def changed_since(record: set, found: dict, texts: dict) -> dict:
    """The part of `found` that shows every file whose line is not in the record."""
    lines = record_of(found, texts)
    if lines[0] not in record:
        return found
    changed = {pathlib.Path(line.split(" ", 1)[1]) for line in lines[1:] if line not in record}
    sources = sorted(name for group in found.values() for name in group)
    chosen = [name for name in sources if name in changed]
    shown = set(read_with_headers(tuple(chosen), texts))
    for header in sorted(changed - shown):
        through = min((name for name in sources if header in read_with_headers((name,), texts)),
                      key=lambda name: (header not in texts[name][1], name.stem != header.stem, name))
        chosen.append(through)
        shown.update(read_with_headers((through,), texts))
    return {key: part for key, group in found.items()
            if (part := {name: flags for name, flags in group.items() if name in chosen})}


def settle(unit: Unit, build: pathlib.Path, version: str, texts: dict, dry_run: bool) -> tuple:
    """A unit's findings, from what is known or by checking it and its parts.
    Returns (findings, sources checked now)."""
    key = key_of(unit, version, texts)
    kept = CACHE / "tessera-tidy" / key[:2] / key
    checked = 0
    if kept.exists():
        outcome = json.loads(kept.read_text())
        kept.touch()
    elif dry_run:
        return [], len(unit.sources)
    else:
        outcome = check(unit, build, key)
        kept.parent.mkdir(parents=True, exist_ok=True)
        fresh = kept.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(outcome))
        fresh.replace(kept)
        checked = len(unit.sources)
    if "findings" in outcome:
        return outcome["findings"], checked
    apart = set(outcome["apart"])
    findings, checked = [], 0
    for part in ([name for name in unit.sources if str(name) not in apart],
                 [name for name in unit.sources if str(name) in apart]):
        half = Unit(unit.folder, tuple(part), unit.flags)
        some, count = settle(half, build, version, texts, dry_run)
        findings += some
        checked += count
    return findings, checked


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], epilog=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/dev")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("folders", nargs="*", metavar="FOLDER")
    arguments = parser.parse_args()
    build = pathlib.Path(arguments.build).resolve()
    if not (build / "compile_commands.json").exists():
        print(f"tidy.py: {arguments.build} is not configured (cmake --preset dev)", file=sys.stderr)
        return 2
    try:
        told = subprocess.run([TIDY, "--version"], capture_output=True, text=True, check=True).stdout
        version = re.search(r"version \S+", told)[0]
    except (OSError, subprocess.CalledProcessError):
        print(f"tidy.py: {TIDY} is missing (scripts/setup.sh --test)", file=sys.stderr)
        return 2
    texts, findings, done, checked, start = {}, set(), 0, 0, time.monotonic()
    every = sources_of(build, arguments.folders)
    record = set(CLEAN.read_text().splitlines()) if CLEAN.exists() else set()
    units = units_of(changed_since(record, every, texts) if arguments.changed else every)
    # The slowest first, so that no processor is idle at the end.
    units.sort(key=lambda unit: (not with_torch(unit), -len(unit.sources)))
    total = sum(len(unit.sources) for unit in units)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        jobs = {pool.submit(settle, unit, build, version, texts, arguments.dry_run): unit
                for unit in units}
        for job in concurrent.futures.as_completed(jobs):
            unit, (some, count) = jobs[job], job.result()
            done += len(unit.sources)
            checked += count
            if arguments.dry_run:
                print(f"{unit.folder}: {len(unit.sources)} sources, {count} to check")
                continue
            for line in sorted(set(some) - findings):
                print(line, flush=True)
            findings |= set(some)
            if count:
                print(f"tidy: {done}/{total} sources, {unit.folder} checked, "
                      f"{time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    if arguments.record and not (findings or arguments.folders or arguments.dry_run):
        CLEAN.write_text("".join(line + "\n" for line in record_of(every, texts)))
    if not arguments.dry_run:
        print(f"tidy: {total} sources, {checked} checked now, {len(findings)} findings, "
              f"{time.monotonic() - start:.0f} s")
    return 1 if findings else 0


sys.exit(main())
