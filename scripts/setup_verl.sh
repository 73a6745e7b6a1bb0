#!/usr/bin/env bash
# Makes .venv-verl: verl 0.9.1 and what its configuration classes import, for the test that lets verl
# judge exported files (tests/planner/interop/verl_test.cc), and Kubeflow's models of a TrainJob for
# launch_oracle_test.cc. torch, transformers, pydantic and numpy come from
# .venv through a .pth file; nothing else of verl's dependencies is installed. About 250 MB on disk,
# most of it Ray, which verl imports first of all. Can be repeated.
#
# usage: scripts/setup_verl.sh [--dry-run]
# environment: TESSERA_VENV       the environment with torch and transformers, default .venv
#              TESSERA_VERL_VENV  the environment to make, default .venv-verl
set -euo pipefail
cd "$(dirname "$0")/.."

dry_run=0
case "${1:-}" in
  "") ;;
  --dry-run) dry_run=1 ;;
  -h | --help) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) echo "setup_verl.sh: unknown argument '$1' (see --help)" >&2; exit 64 ;;
esac
run() {
  echo "+ $*"
  if [ "$dry_run" = 0 ]; then "$@"; fi
}

base=${TESSERA_VENV:-.venv}
venv=${TESSERA_VERL_VENV:-.venv-verl}
if "$venv/bin/python3" -c 'import verl.utils.config, verl.workers.config, kubeflow_trainer_api' >/dev/null 2>&1; then
  echo "setup: verl 0.9.1 is there"
  exit 0
fi
echo "setup: verl 0.9.1 with its configuration classes (75 MB to fetch)"
run python3 -m venv "$venv"
if [ "$dry_run" = 0 ]; then
  site=$("$venv/bin/python3" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
  "$base/bin/python3" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' >"$site/torch.pth"
fi
run "$venv/bin/python3" -m pip install --quiet --disable-pip-version-check --no-deps \
  verl==0.9.1 hydra-core==1.3.2 omegaconf==2.3.0 antlr4-python3-runtime==4.9.3 \
  ray==2.51.1 msgpack==1.2.4 jsonschema==4.26.0 jsonschema-specifications==2025.9.1 \
  referencing==0.37.0 rpds-py==2026.9.1 attrs==26.1.0 protobuf==7.36.2 requests==2.34.2 \
  charset-normalizer==3.5.2 urllib3==2.8.0 tensordict==0.10.0 cloudpickle==3.1.2 orjson==3.13.0 \
  pyvers==0.2.3 importlib_metadata==10.2.0 zipp==4.1.2 codetiming==1.4.0 kubeflow-trainer-api==2.3.0
run "$venv/bin/python3" -c 'import verl.utils.config, verl.workers.config, kubeflow_trainer_api'
