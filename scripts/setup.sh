#!/usr/bin/env bash
# Installs what Tessera needs on Debian 12 or Ubuntu 24.04: system packages (apt) and a Python
# environment in .venv with the torch wheel that the executor links. Can be repeated; does only what
# is missing. The CUDA compiler and headers come from PyPI too.
#
# usage: scripts/setup.sh [--dry-run] [--core | --no-gui] [--test]
#   --dry-run    say what would be done, do nothing
#   --core       planner, simulator and command line only: no torch, no Qt
#   --no-gui     everything but the window
#   --test       also what the tests compare with (transformers, safetensors, verl in .venv-verl)
#                and what checks the sources (clang-format, clang-tidy, shellcheck)
# environment: TESSERA_VENV  use this Python environment instead of .venv
set -euo pipefail
cd "$(dirname "$0")/.."

dry_run=0 torch=1 gui=1 test=0
for argument in "$@"; do
  case "$argument" in
    --dry-run) dry_run=1 ;;
    --core) torch=0 gui=0 ;;
    --no-gui) gui=0 ;;
    --test) test=1 ;;
    -h | --help) sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "setup.sh: unknown argument '$argument' (see --help)" >&2; exit 64 ;;
  esac
done

run() {
  echo "+ $*"
  if [ "$dry_run" = 0 ]; then "$@"; fi
}

packages=(g++ cmake ninja-build ccache git ca-certificates python3 python3-venv
  libcli11-dev libspdlog-dev libfmt-dev libyaml-cpp-dev libvalijson-dev nlohmann-json3-dev
  libpcre2-dev libutf8proc-dev libxxhash-dev librandom123-dev libeigen3-dev libssl-dev
  pkg-config libcpp-httplib-dev libboost-graph-dev libgtest-dev libgmock-dev librapidcheck-dev
  libopenmpi-dev openmpi-bin)
if [ "$gui" = 1 ]; then
  packages+=(qt6-base-dev qt6-svg-dev libqcustomplot-dev libsimdjson-dev fonts-dejavu-core
    qt6-l10n-tools qt6-translations-l10n)
fi
if [ "$test" = 1 ]; then packages+=(bubblewrap shellcheck clang-format-16 clang-tidy-16); fi
if [ "$test" = 1 ] && [ "$gui" = 1 ]; then packages+=(fonts-noto-cjk); fi  # Chinese in pictures

missing=()
for package in "${packages[@]}"; do
  if ! dpkg -s "$package" >/dev/null 2>&1; then missing+=("$package"); fi
done
if [ "${#missing[@]}" -gt 0 ]; then
  sudo=()
  if [ "$(id -u)" != 0 ]; then sudo=(sudo); fi
  echo "setup: installing ${#missing[@]} system packages"
  run "${sudo[@]}" apt-get update -qq
  run "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
    --no-install-recommends "${missing[@]}"
else
  echo "setup: all system packages are there"
fi

venv=${TESSERA_VENV:-.venv}
install_python() {  # install_python MODULE REQUIREMENT...: unless MODULE can be found already
  local module=$1
  shift
  local known="import importlib.util as u, sys; sys.exit(u.find_spec('$module') is None)"
  if "$venv/bin/python3" -c "$known" 2>/dev/null; then
    echo "setup: $module is there"
  else
    run "$venv/bin/python3" -m pip install --quiet --disable-pip-version-check "$@"
  fi
}
if [ "$torch" = 1 ]; then
  if [ ! -x "$venv/bin/python3" ]; then run python3 -m venv "$venv"; fi
  echo "setup: torch 2.11.0 with its CUDA libraries (4.7 GB on disk)"
  install_python torch torch==2.11.0 numpy
  install_python pyarrow pyarrow==26.0.1  # libparquet and its headers, to read prompts
  if [ "$test" = 1 ]; then
    install_python transformers transformers==5.17.0 safetensors==0.8.0
    # What adapters are compared with; alone, for they would bring another torch.
    install_python peft --no-deps peft==0.18.0 accelerate==1.12.0 psutil==7.2.2
    install_python prometheus_client prometheus_client==0.26.0  # parses what a run serves
    install_python mlflow mlflow-skinny==3.17.2  # these two: what a run's numbers are sent to
    install_python wandb wandb==0.31.0
  fi
  # The CUDA runtime's headers include the compiler's (crt/), which the torch wheel lacks; nvcc
  # comes with them. Newer nvvm and crt make PTX that this ptxas refuses, hence the pins.
  install_python nvidia.cu13.nvvm 'cuda-toolkit[nvcc,cccl,cudart,nvml]==13.0.2' \
    nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88
  # Header-only: cuDNN's attention graphs for the trainer's kernels.
  site=$("$venv/bin/python3" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
    2>/dev/null || true)
  if [ ! -e "$site/include/cudnn_frontend.h" ]; then
    run "$venv/bin/python3" -m pip install --quiet --disable-pip-version-check --no-deps \
      nvidia-cudnn-frontend==1.32.0
  fi
fi
if [ "$torch" = 1 ] && [ "$test" = 1 ]; then
  if [ "$dry_run" = 1 ]; then scripts/setup_verl.sh --dry-run; else scripts/setup_verl.sh; fi
fi
echo "setup: done"
