#!/usr/bin/env bash
# Installs what is missing, builds everything that is found, runs every test and ends with
# "N passed, M failed". Can be repeated.
#
# usage: scripts/test.sh [--dry-run] [--preset dev] [--no-setup]
set -euo pipefail
cd "$(dirname "$0")/.."

preset=dev setup=1 dry_run=0
while [ $# -gt 0 ]; do
  case "$1" in
    --dry-run) dry_run=1 ;;
    --preset) preset=${2:?--preset needs a name}; shift ;;
    --no-setup) setup=0 ;;
    -h | --help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "test.sh: unknown argument '$1' (see --help)" >&2; exit 64 ;;
  esac
  shift
done
if [ "$dry_run" = 1 ]; then
  scripts/setup.sh --test --dry-run
  echo "+ cmake --preset $preset && cmake --build --preset $preset && ctest --preset $preset"
  exit 0
fi

if [ "$setup" = 1 ]; then scripts/setup.sh --test; fi
werror=OFF
if [ "${CI:-}" = true ]; then werror=ON; fi
cmake --preset "$preset" -DTESSERA_WERROR=$werror
cmake --build --preset "$preset" -j "$(nproc)"

results=build/$preset/test-results
rm -rf "$results"
mkdir -p "$results"
status=0
GTEST_OUTPUT="json:$PWD/$results/" ctest --preset "$preset" --timeout 900 || status=$?
python3 scripts/count_tests.py "$results" "$status"
