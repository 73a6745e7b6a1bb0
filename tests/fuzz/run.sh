#!/usr/bin/env bash
# Builds the libFuzzer targets and runs one after the other, from seeds in the source tree and, where build/dev has
# the program, from plans and exported files that it makes. Prints executions, coverage and findings of each.
# usage: tests/fuzz/run.sh [SECONDS [TARGET...]]     default 60 each; needs clang-16 and libclang-rt-16-dev
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-60}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(plan yaml config import tables)
cmake --preset fuzz
cmake --build --preset fuzz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work"/{plan,yaml,config,import,tables,made}

# A seed whose first byte chooses the reader: prefixed BYTE FILE DESTINATION.
prefixed() { { printf '%s' "$1"; cat "$2"; } >"$3"; }

cp configs/clusters/*.yaml configs/workloads/*.yaml "$work/yaml"
for config in configs/models/*/config.json; do
  cp "$config" "$work/config/$(basename "$(dirname "$config")").json"
done
cp tests/gui/data/run/plan.json "$work/plan"
cp tests/fuzz/seeds/* "$work/import"
for file in configs/rules/*.json; do prefixed 1 "$file" "$work/tables/$(basename "$file")"; done
prefixed 0 configs/calibrations/h800.json "$work/tables/h800.json"
head -1 tests/gui/data/run/metrics.jsonl | { printf 2; cat; } >"$work/tables/metrics"
printf '3model,cluster,kind,gpus,tp,pp,dp\nqwen2.5-7b,h800-64,train,8,2,1,4\n' >"$work/tables/sweep"

tessera=build/dev/cli/tessera
if [ -x "$tessera" ]; then
  for engine in tessera verl verl-megatron; do
    "$tessera" plan --model qwen2.5-7b --cluster h800-16 --workload grpo-7b-1k --engine "$engine" \
      -o "$work/plan/$engine.json" >"$work/log" 2>&1 || cat "$work/log"
  done
  for target in verl verl-megatron vllm sglang; do
    plan=$work/plan/$target.json
    [ -f "$plan" ] || plan=$work/plan/verl.json
    "$tessera" export "$plan" --to "$target" -o "$work/made/$target" >"$work/log" 2>&1 || cat "$work/log"
    for file in "$work/made/$target"/*.sh; do prefixed 2 "$file" "$work/import/$target.sh"; done
    for file in "$work/made/$target"/*.yaml; do
      [ -f "$file" ] && prefixed 0 "$file" "$work/import/$target.yaml"
    done
  done
  grep -o '^  [a-z_.]*=.*' "$work/made/verl/run.sh" | { printf 1; cat; } >"$work/import/verl.list"
fi

printf '%-8s %12s %9s %9s %8s  %s\n' target executions coverage features peak_MB findings
failed=0
for name in "${targets[@]}"; do
  mkdir -p "$work/found/$name"
  status=0
  "build/fuzz/tests/fuzz/${name}_fuzz" -max_total_time="$seconds" -max_len=65536 -timeout=5 -rss_limit_mb=512 \
    -artifact_prefix="$work/found/$name/" -print_final_stats=1 "$work/$name" 2>"$work/$name.log" || status=$?
  executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/$name.log")
  peak=$(sed -n 's/^stat::peak_rss_mb: *//p' "$work/$name.log")
  last=$(grep -E 'cov: [0-9]+' "$work/$name.log" | tail -1)
  coverage=$(sed -n 's/.*cov: \([0-9]*\).*/\1/p' <<<"$last")
  features=$(sed -n 's/.*ft: \([0-9]*\).*/\1/p' <<<"$last")
  printf '%-8s %12s %9s %9s %8s  %s\n' "$name" "$executed" "$coverage" "$features" "$peak" \
    "$(find "$work/found/$name" -type f | wc -l)"
  if [ "$status" -ne 0 ]; then
    failed=1
    tail -60 "$work/$name.log"
    cp -r "$work/found" build/fuzz/
  fi
done
exit "$failed"
