#!/usr/bin/env python3
"""Shows that a change of the code changed nothing that a user sees.

Runs some 1,600 fixed requests (plans over engines, families, clusters, placements and objectives;
sweeps, simulations, explanations, exports, imports, refusals) with two `tessera` programs and
compares all that they print and write, byte for byte apart from times, versions and the places of
their trees. Each of BEFORE and AFTER is a program, which finds the presets of its own tree, or a
folder that --record has made; both programs are built by one preset. With --executor the requests
are short runs on four CPU ranks instead, compared by metrics, samples and weights.

usage: benchmarks/equality/equality.py old/cli/tessera new/cli/tessera
       benchmarks/equality/equality.py old/cli/tessera --record FOLDER
       benchmarks/equality/equality.py FOLDER new/cli/tessera [--executor]
Exit code: 0 when all are equal, 1 when not.
"""

import argparse
import pathlib
import sys
import tempfile
import time

import executor_requests
import planner_requests
import recording


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path, help="a tessera program, or a recording")
    parser.add_argument("after", type=pathlib.Path, nargs="?", help="the same")
    parser.add_argument("--record", type=pathlib.Path, metavar="FOLDER",
                        help="keep what BEFORE answers in a new folder, and compare nothing")
    parser.add_argument("--executor", action="store_true", help="runs instead of plans")
    parser.add_argument("--only", default="", metavar="REGEX", help="requests with such a name")
    parser.add_argument("--skip", default="", metavar="REGEX", help="but not with such a name")
    parser.add_argument("--jobs", type=int, default=1, help="requests at a time")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER",
                        help="a new folder for what the programs answer; default: a passing one")
    parser.add_argument("--show", type=int, default=20, help="differences to print")
    parser.add_argument("--times", type=int, default=0, help="slowest requests to print")
    options = parser.parse_args()
    if (options.after is None) == (options.record is None):
        parser.error("either AFTER or --record is needed")
    return options


def show_progress(total):
    """Says on a terminal how far it is."""
    def show(done, name):
        if sys.stderr.isatty():
            print(f"\r{done}/{total} {name:<60.60}", end="", file=sys.stderr, flush=True)
    return show


def recorded(where, requests, folder, options):
    """The recording that `where` is, or that its program makes in `folder`."""
    if where.is_dir():
        return where
    begin = time.monotonic()
    seconds = recording.record(where, requests, folder, options.jobs, show_progress(len(requests)))
    if sys.stderr.isatty():
        print("\r" + " " * 80, end="\r", file=sys.stderr)
    print(f"{where}: {len(requests)} requests in {time.monotonic() - begin:.0f} s")
    for name in sorted(seconds, key=seconds.get, reverse=True)[:options.times]:
        print(f"  {seconds[name]:6.2f} s  {name}")
    return folder


def compare(before, after, requests, most):
    """Prints what differs; how many requests do."""
    different = 0
    for request in requests:
        words = recording.difference(request, before, after)
        different += bool(words)
        if words and different <= most:
            print(f"DIFFERENT {request.name}: {words}")
            print("    tessera " + " ".join(request.words))
    print(f"{len(requests) - different} equal, {different} different")
    return different


def main():
    options = arguments()
    every = (executor_requests if options.executor else planner_requests).requests()
    requests = recording.chosen(every, options.only, options.skip)
    if options.record:
        recorded(options.before, requests, options.record, options)
        return 0
    with tempfile.TemporaryDirectory() as passing:
        root = options.keep or pathlib.Path(passing)
        before = recorded(options.before, requests, root / "before", options)
        after = recorded(options.after, requests, root / "after", options)
        return 1 if compare(before, after, requests, options.show) else 0


if __name__ == "__main__":
    sys.exit(main())
