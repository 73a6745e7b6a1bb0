#!/usr/bin/env bash
# From nothing to a learned model: installs what is missing, builds, plans a small GRPO job, simulates
# it, runs it for real with a reshard in every step (on 4 GPUs where there are as many, else on 4 CPU
# ranks), and sets the prediction beside the measurement.
#
# usage: scripts/quickstart.sh [--dry-run] [--steps 200] [--out quickstart-run]
set -euo pipefail
cd "$(dirname "$0")/.."

dry_run=0 steps=200 out=quickstart-run
while [ $# -gt 0 ]; do
  case "$1" in
    --dry-run) dry_run=1 ;;
    --steps) steps=${2:?--steps needs a number}; shift ;;
    --out) out=${2:?--out needs a folder}; shift ;;
    -h | --help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "quickstart.sh: unknown argument '$1' (see --help)" >&2; exit 64 ;;
  esac
  shift
done

step() { printf '\n== %s\n' "$*"; }
run() {
  echo "+ $*"
  if [ "$dry_run" = 0 ]; then "$@"; fi
}

step "1/7 Set-up"
if [ "$dry_run" = 1 ]; then scripts/setup.sh --dry-run; else scripts/setup.sh; fi

step "2/7 Build (build/release)"
kernels=OFF  # CUDA kernels are of use where a GPU is
if command -v nvidia-smi >/dev/null; then kernels=AUTO; fi
# The programs that run below and no others; sources in groups take half as long from nothing.
run cmake --preset release -DTESSERA_TESTS=OFF -DTESSERA_UNITY=ON "-DTESSERA_KERNELS=$kernels"
run cmake --build --preset release -j "$(nproc)" --target tessera tessera-run
tessera=build/release/cli/tessera

# A run never overwrites another: take the first free name.
number=1
while [ -e "$out" ]; do
  number=$((number + 1))
  out=${out%-[0-9]*}-$number
done

step "3/7 A random tiny Qwen2 and 3-digit reversal, in $out"
run mkdir -p "$out"
run $tessera init-model --model tiny-qwen2-digits --digits --seed 1 -o "$out/model"
run $tessera make-data --task reverse --digits 3 --count 1024 --seed 1 -o "$out/prompts.jsonl"

step "4/7 Calibrate this machine (at most 30 s)"
run $tessera calibrate --quick --ranks 4 -o "$out/calibration.json"

step "5/7 Plan and simulate"
plan_inputs=(--model "$out/model" --cluster local-cpu --workload grpo-digits
  --calibration "$out/calibration.json")
fixed=(actor.tp=2 actor.pp=2 rollout.tp=2 rollout.dp=2)
run $tessera plan "${plan_inputs[@]}" -o "$out/free-plan.json"
run $tessera plan "${plan_inputs[@]}" --fix "${fixed[@]}" -o "$out/plan.json"
run $tessera simulate "$out/plan.json" --calibration "$out/calibration.json" --trace "$out/predicted-trace.json"

step "6/7 Run: GRPO, TP2 x PP2 -> TP2 x DP2, weights resharded in every step"
echo "  on a terminal one line shows the progress; every step's line is in $out/run/log.txt"
settings=(--config grpo-digits --set "data.train_files=[$out/prompts.jsonl]")
run $tessera run "$out/plan.json" "${settings[@]}" \
  --set "trainer.total_training_steps=$steps" --ranks 4 -o "$out/run"

step "7/7 Prediction against measurement; then the same with whole tensors gathered in every reshard"
run $tessera compare "$out/plan.json" "$out/run"
run $tessera run "$out/plan.json" "${settings[@]}" --reshard full \
  --set trainer.total_training_steps=10 --ranks 4 -o "$out/run-full"
run $tessera compare "$out/run-full/plan.json" "$out/run-full"

cat <<EOF

Where to look:
  $out/run/log.txt             a line for every step
  $out/run/metrics.jsonl       every step's numbers (verl's names)
  $out/run/trace.json          every rank's phases, for ui.perfetto.dev (the prediction: $out/predicted-trace.json)
  $out/run/hf                  the trained model, loadable by transformers
  the window: cmake --build --preset release && $tessera gui --plan $out/plan.json --run $out/run
EOF
