#!/usr/bin/env python3
"""The launchers' own judgement of exported files.

usage: launch_oracle.py FOLDER...
  FOLDER  holds what one `tessera export` wrote for torchrun, Kubernetes or Ray

  trainjob.yaml     becomes kubeflow-trainer-api's models of a TrainJob and comes back as it was:
                    the models drop keys that they do not have, and a difference is an error
  launch.sh         runs with a torchrun that notes its words; torch's own parser reads them
  submit.sh         runs with a ray that notes its words; Ray's command line reads them, its
                    RuntimeEnv takes runtime_env.yaml, and a shell runs what Ray would send, with a
                    python3 that notes its words

Prints one JSON line per folder: {"folder", "error" or "values"}; exits 1 when any has an error.
"""
import contextlib
import json
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("RAY_DISABLE_IMPORT_WARNING", "1")

import yaml  # noqa: E402

# "$1" is the file for the words; each is ended by a zero byte.
NOTE = '#!/bin/sh\nprintf "%s\\0" "$@" >"$NOTED"\n'


def words_of(command, program, folder, **environment):
    """The words that `program` gets where `command` runs in `folder`."""
    with tempfile.TemporaryDirectory() as bin_folder:
        fake = os.path.join(bin_folder, program)
        with open(fake, "w", encoding="utf-8") as file:
            file.write(NOTE)
        os.chmod(fake, 0o755)
        noted = os.path.join(bin_folder, "words")
        path = bin_folder + os.pathsep + os.environ["PATH"]
        subprocess.run(
            command,
            cwd=folder,
            check=True,
            shell=isinstance(command, str),
            env={**os.environ, **environment, "PATH": path, "NOTED": noted},
        )
        with open(noted, encoding="utf-8") as file:
            return file.read().split("\0")[:-1]


def check_trainjob(folder):
    from kubeflow_trainer_api.models import TrainerV1alpha1TrainJob

    with open(os.path.join(folder, "trainjob.yaml"), encoding="utf-8") as file:
        written = yaml.safe_load(file)
    # What a resource limit is in JSON: a string or a number (the model takes strings).
    limits = written["spec"]["trainer"]["resourcesPerNode"]["limits"]
    written["spec"]["trainer"]["resourcesPerNode"]["limits"] = {k: str(v) for k, v in limits.items()}
    read = TrainerV1alpha1TrainJob.from_dict(written).to_dict()
    if read != written:
        raise ValueError(f"keys that a TrainJob does not have: {difference(written, read)}")
    trainer = written["spec"]["trainer"]
    patches = written["spec"]["runtimePatches"]
    pod = patches[0]["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"][0]
    pod = pod["template"]["spec"]["template"]["spec"]
    volumes = {volume["name"] for volume in pod["volumes"]}
    mounted = {mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
    assert volumes == mounted, f"volumes {volumes}, mounted {mounted}"
    return {
        "nodes": trainer["numNodes"],
        "per_node": trainer["numProcPerNode"],
        "command": trainer["command"] + trainer["args"],
        "environment": {variable["name"]: variable["value"] for variable in trainer["env"]},
    }


def difference(written, read, place=""):
    if isinstance(written, dict) and isinstance(read, dict):
        keys = sorted(set(written) ^ set(read))
        found = [f"{place}/{key}" for key in keys]
        for key in sorted(set(written) & set(read)):
            found += difference(written[key], read[key], f"{place}/{key}")
        return found
    if isinstance(written, list) and isinstance(read, list) and len(written) == len(read):
        return [d for i, (a, b) in enumerate(zip(written, read)) for d in difference(a, b, f"{place}/{i}")]
    return [] if written == read else [place]


def check_torchrun(folder):
    from torch.distributed.run import parse_args

    words = words_of(
        ["bash", os.path.join(folder, "launch.sh")],
        "torchrun",
        folder,
        NODE_RANK="1",
        MASTER_ADDR="first",
    )
    read = parse_args(words)
    assert read.no_python, "torchrun would start tessera-run by Python"
    return {
        "nodes": int(read.nnodes.split(":")[0]),
        "per_node": int(read.nproc_per_node),
        "command": [read.training_script] + read.training_script_args,
        "meets": "here" if read.standalone else f"{read.master_addr} as {read.node_rank}",
    }


def check_ray(folder):
    from ray.dashboard.modules.job.cli import list2cmdline, submit
    from ray.runtime_env import RuntimeEnv

    words = words_of(["bash", os.path.join(folder, "submit.sh"), "trainer.last='a b'"], "ray", folder)
    assert words[:2] == ["job", "submit"], words[:2]
    read = submit.make_context("submit", list(words[2:])).params
    with open(os.path.join(folder, read["runtime_env"]), encoding="utf-8") as file:
        environment = RuntimeEnv(**yaml.safe_load(file))
    assert os.path.samefile(os.path.join(folder, environment["working_dir"]), folder)
    # What the job's supervisor does with the command (job_supervisor.py, _exec_entrypoint).
    started = words_of(list2cmdline(read["entrypoint"]), "python3", folder)
    return {"command": started, "environment": dict(environment["env_vars"])}


CHECKS = {"trainjob.yaml": check_trainjob, "launch.sh": check_torchrun, "submit.sh": check_ray}


def check(folder):
    found = [name for name in CHECKS if os.path.exists(os.path.join(folder, name))]
    assert len(found) == 1, f"files of {found}"
    return CHECKS[found[0]](folder)


def main():
    bad = 0
    for folder in sys.argv[1:]:
        line = {"folder": folder}
        try:
            with contextlib.redirect_stdout(sys.stderr):
                line["values"] = check(os.path.abspath(folder))
        except (Exception, SystemExit) as error:  # noqa: BLE001: every failure is a verdict
            line["error"] = f"{type(error).__name__}: {error}"
            bad = 1
        print(json.dumps(line))
    return bad


if __name__ == "__main__":
    sys.exit(main())
