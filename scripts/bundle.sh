#!/usr/bin/env bash
# Packs the executor into one relocatable folder for a machine that has torch 2.11.0 (cu130) in its
# Python but nothing to build with: programs, MPI module, presets and the small libraries they need
# (not the module for Parquet, whose libraries take 62 MB). torch, NCCL, cuDNN and the CUDA runtime
# are taken from that machine's Python.
#
# usage: scripts/bundle.sh BUILD_FOLDER BUNDLE_FOLDER
# there: BUNDLE_FOLDER/tessera-env COMMAND...   (sets the library path, then runs the command)
set -euo pipefail
if [ $# != 2 ]; then sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 64; fi
build=$1 bundle=$2
source_dir=$(cd "$(dirname "$0")/.." && pwd)

rm -rf "$bundle"
mkdir -p "$bundle/bin" "$bundle/lib" "$bundle/share"
for program in "$build"/cli/tessera "$build"/executor/tessera-run "$build"/lib/libtessera_mpi.so; do
  if [ -e "$program" ]; then cp "$program" "$bundle/bin/"; fi
done
cp -r "$source_dir/configs" "$bundle/share/configs"
mkdir "$bundle/share/vllm" && cp -r "$source_dir/integrations/vllm/tessera_vllm" "$bundle/share/vllm/"
rm -rf "$bundle/share/vllm/tessera_vllm/__pycache__"
strip "$bundle"/bin/*

# Libraries that a bare machine may lack; those of torch, CUDA, MPI and the C library are its own.
for program in "$bundle"/bin/*; do
  ldd "$program" 2>/dev/null | awk '/=> \// {print $3}'
done | sort -u | grep -vE '/(torch|nvidia)/|/lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|mpi|open-rte|open-pal|hwloc|event.*|z|udev|cap)\.so|/lib(mpi|open-rte|open-pal|hwloc|event)' |
  while read -r library; do cp -L "$library" "$bundle/lib/"; done

cat >"$bundle/tessera-env" <<'EOF'
#!/usr/bin/env bash
# Runs a command with the bundle's programs on PATH and this machine's torch on the library path.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
site=$(python3 -c 'import importlib.util as u, os; print(os.path.dirname(os.path.dirname(u.find_spec("torch").origin)))')
export PATH="$here/bin:$PATH" TESSERA_CONFIGS_DIR="$here/share/configs"
export PYTHONPATH="$here/share/vllm${PYTHONPATH:+:$PYTHONPATH}" TESSERA_OUTER_LIBRARY_PATH="${LD_LIBRARY_PATH:-}"
export LD_LIBRARY_PATH="$here/lib:$site/torch/lib:$site/nvidia/nccl/lib:$site/nvidia/cu13/lib:$site/nvidia/cudnn/lib:$site/nvidia/cusparselt/lib:$site/nvidia/nvshmem/lib:${LD_LIBRARY_PATH:-}"
exec "$@"
EOF
chmod +x "$bundle/tessera-env"
du -sh "$bundle"
