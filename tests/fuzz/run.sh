#!/usr/bin/env bash
# Builds the libFuzzer targets and runs each for a number of inputs, from seeds in the source tree.
# usage: tests/fuzz/run.sh [RUNS]     default 20000 each; needs clang-16 and libclang-rt-16-dev
set -euo pipefail
cd "$(dirname "$0")/../.."
runs=${1:-20000}
cmake --preset fuzz
cmake --build --preset fuzz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work"/{plan,yaml,config,import}
cp configs/clusters/*.yaml configs/workloads/*.yaml "$work/yaml"
for config in configs/models/*/config.json; do
  cp "$config" "$work/config/$(basename "$(dirname "$config")").json"
done
find docs examples benchmarks -name '*plan*.json' -size -200k -exec cp {} "$work/plan" ';'
cp tests/fuzz/seeds/* "$work/import"
for name in plan yaml config import; do
  echo "== $name"
  "build/fuzz/tests/fuzz/${name}_fuzz" -runs="$runs" -max_len=65536 -timeout=5 -rss_limit_mb=1024 \
    -print_final_stats=1 "$work/$name" 2>"$work/$name.log" || { tail -40 "$work/$name.log"; exit 1; }
  grep -E 'stat::(number_of_executed|peak_rss)' "$work/$name.log"
done
