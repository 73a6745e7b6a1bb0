#!/usr/bin/env bash
# Builds the trainer's kernels as a C library and measures them with kernels.py: on a machine with a
# Hopper GPU, nvcc 13, torch 2.11 and cudnn-frontend 1.32 (FRONTEND = the folder of cudnn_frontend.h).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
site=$(python3 -c 'import torch, os; print(os.path.dirname(os.path.dirname(torch.__file__)))')
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
flags=(--expt-relaxed-constexpr -gencode=arch=compute_90a,code=sm_90a -Xcompiler=-fPIC "-I$root"
  "-I${FRONTEND:-$site/include}" "-I$site/nvidia/cudnn/include")
nvcc -std=c++20 -O2 "${flags[@]}" -c "$here/kernels_c.cu" -o "$build/c.o"
nvcc -std=c++20 -O1 "${flags[@]}" -c "$root/executor/kernels/packed_attention.cc" -o "$build/attention.o"
for name in flat_kernels layer_kernels; do
  nvcc -std=c++17 -O3 "${flags[@]}" -c "$root/executor/kernels/$name.cu" -o "$build/$name.o"
done
nvcc -shared -o "$build/libkernels.so" "$build"/*.o "-L$site/nvidia/cudnn/lib" -l:libcudnn.so.9 -lnvrtc
LD_LIBRARY_PATH="$site/nvidia/cudnn/lib:$site/nvidia/cu13/lib:${LD_LIBRARY_PATH:-}" \
  python3 "$here/kernels.py" "$build/libkernels.so"
