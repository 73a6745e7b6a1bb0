#!/usr/bin/env bash
# Fits the shipped calibrations (configs/calibrations/*.json but cpu.json) again from
# cost_models/data. Prints the error on held-out samples; running it twice changes nothing.
# usage: scripts/make_calibrations.sh [BUILD]      (default build/dev)
set -euo pipefail
cd "$(dirname "$0")/.."
build="${1:-build/dev}"
cmake --build "$build" --target tessera-make-calibrations
"$build/cost_models/tessera-make-calibrations" cost_models/data configs/calibrations
