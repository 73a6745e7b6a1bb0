#!/usr/bin/env bash
# Kills a PPO run on four CPU ranks at random moments of saves and of steps, under TP2 x PP2 and under FSDP4,
# and says what became of it (kill_and_resume.py).
#
# usage: scripts/kill_matrix.sh TESSERA FOLDER [KILLS]
# KILLS (100) for each of the four: 200 in saves, 200 in steps. FOLDER is made. About five seconds a kill.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '5,6s/^# //p' "$0" >&2; exit 64; }
tessera=$(realpath "$1")
folder=$2
kills=${3:-100}
here=$(dirname "$(realpath "$0")")
mkdir -p "$folder"
cd "$folder"
[ -e m ] || "$tessera" init-model --model tiny-qwen2-digits --digits --seed 1 -o m
"$tessera" make-data --task reverse --digits 3 --count 512 -o prompts.jsonl
cat > ppo.yaml <<'YAML'
version: 1
algorithm: ppo
prompts_per_step: 16
samples_per_prompt: 4
prompt_tokens: 8
response_tokens: {mean: 4, cv: 0, max: 4}
mini_batches: 2
epochs: 1
kl: reward
YAML
plan() {
  "$tessera" plan --model m --cluster local-cpu --workload ppo.yaml --fix placement=colocated "${@:2}" rollout.tp=2 \
    rollout.dp=2 -o "$1.json" > /dev/null
}
plan tp2pp2 actor.tp=2 actor.pp=2 critic.tp=2 critic.pp=2
plan fsdp4 actor.tp=1 actor.pp=1 actor.zero=3 critic.tp=1 critic.pp=1 critic.zero=3
for layout in tp2pp2 fsdp4; do
  for where in save step; do
    rm -rf "$layout-$where" "$layout-$where-whole"
    echo -n "$layout, $where: "
    python3 "$here/kill_and_resume.py" --run "$layout-$where" --kills "$kills" --in "$where" --seed 7 -- \
      "$tessera" run "$layout.json" --config ppo-digits --set 'data.train_files=[prompts.jsonl]'
  done
done
