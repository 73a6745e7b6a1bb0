#!/usr/bin/env bash
# Keys and clicks without sense on the window, under ASan and UBSan.
#
# usage: scripts/window_monkey.sh [EVENTS [BUILD]]
#
# Builds the test with the sanitizers of preset asan in BUILD (default build/asan-window), where
# everything but torch is instrumented, and lets a monkey make EVENTS events (default 20,000). Ends
# with the test's own code. What Qt, fontconfig and GLib never free is no leak of ours: their
# libraries are named in tests/gui/leaks.supp.
set -euo pipefail
cd "$(dirname "$0")/.."
events=${1:-20000}
build=${2:-build/asan-window}
cmake --preset asan -B "$build" -DTESSERA_GUI=ON --log-level=WARNING
cmake --build "$build" --target gui_window_test
TESSERA_MONKEY_EVENTS=$events QT_QPA_PLATFORM=offscreen \
  ASAN_OPTIONS=detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1 \
  LSAN_OPTIONS="suppressions=$PWD/tests/gui/leaks.supp:print_suppressions=0" \
  "$build/tests/gui/gui_window_test" --gtest_filter='*Monkey*'
