#!/bin/sh
# Runs a compiler and returns when its output (the argument after -o) is on the disk: a machine that
# is stopped or copied afterwards keeps all of it, not a file of the right length with holes.
"$@" || exit
while [ $# -gt 1 ]; do
  if [ "$1" = -o ]; then exec sync "$2"; fi
  shift
done
