#!/usr/bin/env python3
"""Adds up GoogleTest's JSON reports in a folder and prints "N passed, M failed, K skipped".

usage: count_tests.py FOLDER CTEST_STATUS. A test program that ended without a report (a crash, a
timeout, a test that is no GoogleTest) counts through ctest's own status: at least one failure.
"""
import json
import pathlib
import sys


def main() -> int:
    folder, status = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    passed = failed = skipped = 0
    for report in sorted(folder.rglob("*.json")):
        for suite in json.loads(report.read_text())["testsuites"]:
            for case in suite["testsuite"]:
                if case.get("failures"):
                    failed += 1
                    print(f"failed: {suite['name']}.{case['name']}")
                elif case.get("result") == "SKIPPED" or case.get("status") == "NOTRUN":
                    skipped += 1
                else:
                    passed += 1
    if status != 0 and failed == 0:
        failed = 1
    if passed == 0:
        failed = max(failed, 1)
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 0 if failed == 0 and status == 0 else 1


sys.exit(main())
