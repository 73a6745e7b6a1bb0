#!/usr/bin/env python3
"""The launchers' own judgement of exported files.

usage: launch_oracle.py FOLDER...
  FOLDER  holds what one `tessera export` wrote for torchrun, Kubernetes or Ray

  trainjob.yaml     becomes kubeflow-trainer-api's models of a TrainJob and comes back as it was:
                    the models drop keys that they do not have, and a difference is an error
  launch.sh         runs with a torchrun that notes its words; torch's own parser reads them
  rayjob.yaml       has keys of KubeRay's types (fixtures/rayjob_keys.json) and pods that come back
                    from kubeflow-trainer-api's models as they were; its entrypoint runs with a
                    python3 that notes its words
  job.sbatch        (with run.sh) runs with an srun that notes its words and starts the last step
                    alone; Ray's command line reads those that start Ray
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


def check_pod(template):
    from kubeflow_trainer_api.models import IoK8sApiCoreV1PodTemplateSpec

    # What a resource limit is in JSON: a string or a number (the model takes strings).
    for container in template["spec"]["containers"]:
        limits = container["resources"]["limits"]
        container["resources"]["limits"] = {key: str(value) for key, value in limits.items()}
    read = IoK8sApiCoreV1PodTemplateSpec.from_dict(template).to_dict()
    if read != template:
        raise ValueError(f"keys that a pod does not have: {difference(template, read)}")
    volumes = {volume["name"] for volume in template["spec"]["volumes"]}
    mounted = {mount["name"] for mount in template["spec"]["containers"][0]["volumeMounts"]}
    assert volumes == mounted, f"volumes {volumes}, mounted {mounted}"
    return int(template["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"])


def check_rayjob(folder):
    with open(os.path.join(folder, "rayjob.yaml"), encoding="utf-8") as file:
        job = yaml.safe_load(file)
    with open(os.path.join(os.path.dirname(__file__), "fixtures/rayjob_keys.json"), encoding="utf-8") as file:
        known = json.load(file)
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    cluster = job["spec"]["rayClusterSpec"]
    workers = cluster.get("workerGroupSpecs", [])
    parts = [("RayJobSpec", job["spec"]), ("RayClusterSpec", cluster), ("HeadGroupSpec", cluster["headGroupSpec"])]
    parts += [("WorkerGroupSpec", group) for group in workers]
    for name, part in parts:
        for key, value in part.items():
            if key not in known[name]:
                raise ValueError(f"{name} has no {key}")
            if not isinstance(value, {"string": str, "number": int, "flag": bool, "map": dict, "list": list}[known[name][key]]):
                raise ValueError(f"{name}.{key} = {value!r} is no {known[name][key]}")
    groups = [cluster["headGroupSpec"]] + workers
    gpus = {check_pod(group["template"]) for group in groups}
    gpus |= {int(group["rayStartParams"]["num-gpus"]) for group in groups}
    assert len(gpus) == 1, gpus
    assert all(isinstance(v, str) for group in groups for v in group["rayStartParams"].values())
    assert all(g["replicas"] == g["minReplicas"] == g["maxReplicas"] for g in workers)
    command = job["spec"]["entrypoint"].replace("/job/", folder + "/")
    return {
        "nodes": 1 + sum(group["replicas"] for group in workers),
        "per_node": gpus.pop(),
        "command": words_of(command, "python3", folder),
    }


# Notes the words of every step, ended by an empty one; the step that starts the trainer runs.
SRUN = """#!/bin/sh
printf '%s\\0' "$@" '' >>"$STEPS"
case "$*" in *"hostname "*) echo '10.0.0.7 fd00::7' ;; esac
case "$*" in *"bash run.sh") exec bash run.sh ;; esac
"""


def check_sbatch(folder):
    from ray.scripts.scripts import start

    with tempfile.TemporaryDirectory() as bin_folder:
        for name, text in {
            "srun": SRUN,
            "scontrol": "#!/bin/sh\nprintf 'node-7\\nnode-8\\n'\n",
        }.items():
            with open(os.path.join(bin_folder, name), "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(os.path.join(bin_folder, name), 0o755)
        steps = os.path.join(bin_folder, "steps")
        path = bin_folder + os.pathsep + os.environ["PATH"]
        command = words_of(
            ["env", f"PATH={path}", "bash", "-c", 'PATH=$(dirname "$NOTED"):$PATH; . ./job.sbatch; wait'],
            "python3",
            folder,
            STEPS=steps,
            SLURM_JOB_NODELIST="node-[7-8]",
            SLURM_JOB_ID="1234567",
        )
        with open(steps, encoding="utf-8") as file:
            noted = [step.split("\0") for step in file.read().split("\0\0")[:-1]]
    rays = []
    for step in noted:
        if "ray" in step:
            words = step[step.index("ray") + 1 :]
            assert words[0] == "start", words
            rays.append(start.make_context("start", words[1:]).params)
    heads = [ray for ray in rays if ray["head"]]
    others = [ray for ray in rays if not ray["head"]]
    result = {"steps": len(noted), "command": command, "heads": len(heads), "others": len(others)}
    if heads:
        result["head"] = f"{heads[0]['node_ip_address']}:{heads[0]['port']}"
        result["joins"] = others[0]["address"]
        result["per_node"] = heads[0]["num_gpus"]
        assert all(ray["block"] and ray["num_gpus"] == heads[0]["num_gpus"] for ray in rays)
    return result


CHECKS = {"job.sbatch": check_sbatch, "rayjob.yaml": check_rayjob, "trainjob.yaml": check_trainjob, "launch.sh": check_torchrun, "submit.sh": check_ray}


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
