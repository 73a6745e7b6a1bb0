#!/usr/bin/env bash
# Pictures of the window in twelve states, of three sizes and in both themes, for looking at them one
# by one after a change of the window.
#
# usage: scripts/window_states.sh [BUILD [FOLDER]]
#
# BUILD holds gui/tessera-gui (default build/dev); pictures go to FOLDER (default docs/images/states)
# as STATE_SIZE_THEME.png. The largest is of a screen of 3,840 x 2,160 at a scale of 2. With
# ImageMagick's convert they have a palette of 256 colours, less than half of the bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/dev}
folder=${2:-docs/images/states}
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
mkdir -p "$folder"

plan=(--model qwen2.5-7b --cluster h100-64 --workload ppo-7b-1k --nodes 2 --fix actor.tp=4 --fix actor.pp=2)
large=(--model llama3.1-70b --cluster meta-h100-24k --workload grpo-7b-1k --nodes 2048)
none=(--model qwen2.5-7b --cluster h100-8 --workload grpo-7b-1k --nodes 1 --fix rollout.tp=1
  --fix rollout.max_sequences=8192)

# keep WINDOW STATE: the picture of a window becomes that of a state.
keep() {
  local to="$folder/$2_${size}_$theme.png"
  convert "$made/$1.png" -strip -dither None -colors 256 "png8:$to" 2> /dev/null ||
    cp "$made/$1.png" "$to"
}

gui() {
  QT_QPA_PLATFORM=offscreen QT_SCALE_FACTOR=$scale "$build/gui/tessera-gui" "$@" \
    --size "$points" --theme "$theme" --export "$made" --formats png,whole > /dev/null
}

for size in 1280x720 1920x1080 3840x2160; do
  points=$size
  scale=1
  if [ "$size" = 3840x2160 ]; then
    points=1920x1080
    scale=2
  fi
  for theme in light dark; do
    gui "${plan[@]}"
    keep explore explore
    gui "${plan[@]}" --compare 3 --run tests/gui/data/run
    keep window_pinned compare
    keep window_scatter trade-offs
    keep window_timeline timeline
    keep window_reshard reshard
    keep window_memory_over_time memory
    keep window_rollout_tail tail
    keep window_link_load links
    keep run run
    keep window_metrics metrics
    gui "${large[@]}"
    keep explore 16384-gpus
    gui "${none[@]}"
    keep explore infeasible
    echo "$size $theme"
  done
done
