#!/usr/bin/env bash
# Installs what is missing, checks the sources' format, builds everything that is found, runs every
# test and ends with "N passed, M failed". Can be repeated.
#
# usage: scripts/test.sh [--dry-run] [--preset NAME | --sanitize] [--within MINUTES] [--tidy]
#                        [--no-setup]
#   --preset    build and test with this preset; default dev; also test, core, asan, tsan
#   --sanitize  tests that need neither torch nor Qt under ASan and UBSan (preset asan), the others,
#               the longest and the programs that they call without (preset test)
#   --within    with --sanitize: on a machine so slow that it would take longer than this, all tests
#               run without sanitizers, and the result says so
#   --tidy      also clang-tidy over what differs from scripts/tidy_clean.txt (scripts/tidy.py)
#   --no-setup  install nothing
set -euo pipefail
cd "$(dirname "$0")/.."

preset=dev setup=1 tidy=0 dry_run=0 within=0
while [ $# -gt 0 ]; do
  case "$1" in
    --dry-run) dry_run=1 ;;
    --preset) preset=${2:?--preset needs a name}; shift ;;
    --no-setup) setup=0 ;;
    --sanitize) preset='' ;;
    --within) within=$((60 * ${2:?--within needs minutes})); shift ;;
    --tidy) tidy=1 ;;
    -h | --help) sed -n '2,14s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "test.sh: unknown argument '$1' (see --help)" >&2; exit 64 ;;
  esac
  shift
done

step() { printf '\n== %s (after %d s)\n' "$*" "$SECONDS"; }
run() {
  echo "+ $*"
  if [ "$dry_run" = 0 ]; then "$@"; fi
}
fail() {  # fail WHAT: as the last line of a run that ends before its tests
  echo "0 passed, 1 failed: $1"
  exit 1
}

werror=OFF
if [ "${CI:-}" = true ]; then
  werror=ON
  # Where nothing is kept between runs, filling the compiler's cache is a twentieth of the compiling.
  if [ ! -d "${CCACHE_DIR:-${XDG_CACHE_HOME:-${HOME:-}/.cache}/ccache}" ]; then export CCACHE_DISABLE=1; fi
fi
jobs=$(nproc)
results=$PWD/build/test-results
status=0 untidy=0 built=0 unsanitized=''

configure() {  # configure PRESET [ARGUMENT...]
  run cmake --preset "$1" "-DTESSERA_WERROR=$werror" "${@:2}" --log-level=WARNING ||
    fail "cmake --preset $1"
}
tests_of() {  # tests_of PRESET: names, one a line
  ctest --preset "$1" --show-only=json-v1 |
    python3 -c 'import json, sys; [print(test["name"]) for test in json.load(sys.stdin)["tests"]]'
}
any_of() {  # any_of NAME...: the expression that matches these names alone
  local IFS='|'
  echo "^($*)\$"
}
build() {  # build PRESET [TARGET...]
  # Quiet, so that the end of a long log, which is what many services keep, says what steps took.
  run cmake --build --preset "$1" -j "$jobs" ${2:+--target "${@:2}"} -- --quiet || fail "build of $1"
}
test_with() {  # test_with PRESET [CTEST ARGUMENT...]
  run env "GTEST_OUTPUT=json:$results/$1/" ctest --preset "$1" --timeout 900 "${@:2}" || status=$?
}

if [ "$setup" = 1 ]; then
  step "Set-up"
  if [ "$dry_run" = 1 ]; then scripts/setup.sh --test --dry-run; else scripts/setup.sh --test; fi
fi
if [ "$dry_run" = 0 ]; then rm -rf "$results"; fi

step "Format"
mapfile -t sources < <(git ls-files '*.h' '*.cc' '*.cu')
echo "+ clang-format-16 --dry-run -Werror (${#sources[@]} files)"
if [ "$dry_run" = 0 ]; then
  clang-format-16 --dry-run -Werror "${sources[@]}" || fail "clang-format"
fi
if [ "$tidy" = 1 ]; then
  step "clang-tidy"
  # A folder of its own: it is never built, and its sources are not compiled in groups.
  configure dev -B build/tidy
  # What it finds is a failure of the whole, which the tests still run for.
  run scripts/tidy.py --changed --build build/tidy || status=$? untidy=1
fi

if [ -n "$preset" ]; then
  step "Build and tests ($preset)"
  configure "$preset"
  build "$preset"
  test_with "$preset"
else
  step "Build and tests of what needs torch or Qt"
  configure asan -DTESSERA_LONG_TESTS=OFF
  configure test
  started=$SECONDS
  if [ "$dry_run" = 1 ]; then
    echo "+ build and run the tests that asan has not"
  else
    mapfile -t sanitized < <(tests_of asan | sort)
    mapfile -t others < <(tests_of test | sort | comm -23 - <(printf '%s\n' "${sanitized[@]}"))
    mapfile -t both < <(tests_of test | sort | comm -12 - <(printf '%s\n' "${sanitized[@]}"))
    if [ "${#others[@]}" -gt 0 ]; then
      build test "${others[@]}"
      built=$((SECONDS - started))
      # Many of them wait for programs and servers that they have started.
      test_with test -j $((jobs + 1)) -R "$(any_of "${others[@]}")"
    fi
  fi

  # From nothing what is left takes 1.75 times as long as that build, measured; hence twice.
  if [ "$within" = 0 ] || [ $((SECONDS + 2 * built)) -le "$within" ]; then
    step "Build and tests under ASan and UBSan"
    build asan
    test_with asan -j "$jobs"
  else
    step "Build and tests of the others, without sanitizers"
    build test  # all: some tests are scripts and no target
    test_with test -j "$jobs" -R "$(any_of "${both[@]}")"
    unsanitized="not under sanitizers: ${#both[@]} test programs, as the build took $built s"
  fi
fi
if [ "$dry_run" = 1 ]; then exit 0; fi
step "Result"
if [ "$untidy" = 1 ]; then echo "failed: clang-tidy"; fi
if [ -n "$unsanitized" ]; then echo "$unsanitized"; fi
python3 scripts/count_tests.py "$results" "$status"
