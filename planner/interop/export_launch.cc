// Launchers that start tessera-run on every node: torchrun, Slurm, Kubeflow's TrainJob.
#include "planner/interop/export_files.h"
#include "planner/plan/plan_json.h"

namespace tessera {
namespace {

std::string train_words(const ExportOptions& options) {
  return "train plan.json --config " + shell_word(options.run_config) + " -o " +
         shell_word(options.run_folder);
}

// A DNS label (RFC 1123): what Kubernetes and Slurm accept as a job's name.
bool check_name(const std::string& name, Problems& problems) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  bool good = !name.empty() && name.size() <= 63 && name.front() != '-' && name.back() != '-';
  for (const char c : name) good = good && allowed(c);
  if (!good) {
    problems.push_back({"--name", "", "'" + name + "'",
                        "at most 63 lower-case letters, digits and '-'", "a job's name"});
  }
  return good;
}

std::string torchrun_script(const Plan& plan, const ExportOptions& options, JobShape shape) {
  return script_head(plan,
                     "Starts the plan's ranks on this node. On several nodes run it on each "
                     "with NODE_RANK, and MASTER_ADDR of the first.") +
         export_lines(environment_of(plan, ExportTarget::torchrun)) +
         "\ncd \"$(dirname \"$0\")\"\nexec torchrun --no-python --nnodes " +
         std::to_string(shape.nodes) + " --nproc-per-node " + std::to_string(shape.gpus_per_node) +
         " \\\n  --node-rank \"${NODE_RANK:-0}\" --master-addr \"${MASTER_ADDR:-127.0.0.1}\" "
         "--master-port \"${MASTER_PORT:-29500}\" \\\n  tessera-run " +
         train_words(options) + " \"$@\"\n";
}

std::string slurm_script(const Plan& plan, const ExportOptions& options, JobShape shape) {
  const std::string gpus = std::to_string(shape.gpus_per_node);
  std::string text = "#!/usr/bin/env bash\n#SBATCH --job-name=" + options.name +
                     "\n#SBATCH --nodes=" + std::to_string(shape.nodes) +
                     "\n#SBATCH --ntasks-per-node=" + gpus;
  if (plan.cluster.device.name != "cpu") text += "\n#SBATCH --gpus-per-node=" + gpus;
  text += "\n#SBATCH --exclusive\n#SBATCH --output=%x-%j.log\n";
  text += comment_lines("Starts the plan's ranks by srun, one task per GPU. Made by tessera " +
                        plan.provenance.tessera_version + "; submit it in this folder.");
  text += "set -euo pipefail\n\n";
  text += export_lines(environment_of(plan, ExportTarget::slurm));
  text += comment_lines("Ranks meet on the job's first node, at a port that follows from the job.");
  text +=
      "MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n"
      "MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))\nexport MASTER_ADDR MASTER_PORT\n\n"
      "srun --kill-on-bad-exit=1 tessera-run " +
      train_words(options) + "\n";
  return text;
}

// Kubeflow Trainer v2: the torch runtime sets PET_* on every node, which torchrun reads.
std::string train_job(const Plan& plan, const ExportOptions& options, JobShape shape) {
  const std::string gpus = std::to_string(shape.gpus_per_node);
  const std::string image = options.image.empty() ? "tessera:latest" : options.image;
  std::string text = comment_lines(
      "Kubeflow TrainJob: the runtime sets PET_NNODES, PET_NODE_RANK, PET_MASTER_ADDR and "
      "PET_MASTER_PORT, which torchrun reads. The plan comes from a ConfigMap: kubectl create "
      "configmap " +
      options.name + "-plan --from-file=plan.json --from-file=" + options.run_config);
  text += "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata:\n  name: " +
          yaml_text(options.name) +
          "\nspec:\n  runtimeRef:\n    name: torch-distributed\n  trainer:\n";
  text += "    image: " + yaml_text(image) + "\n    numNodes: " + std::to_string(shape.nodes) +
          "\n    numProcPerNode: " + gpus + "\n    resourcesPerNode:\n      limits:\n";
  text += plan.cluster.device.name == "cpu" ? "        cpu: " + gpus + "\n"
                                            : "        nvidia.com/gpu: " + gpus + "\n";
  text += "    command: [torchrun, --no-python, tessera-run, train]\n    args:\n";
  for (const std::string& word :
       {std::string("/plan/plan.json"), std::string("--config"), "/plan/" + options.run_config,
        std::string("-o"), options.run_folder}) {
    text += "      - " + yaml_text(word) + "\n";
  }
  const auto environment = environment_of(plan, ExportTarget::kubernetes);
  if (!environment.empty()) text += "    env:\n";
  for (const EnvironmentVariable& variable : environment) {
    text += comment_lines(variable.reason, "      # ");
    text += "      - name: " + variable.name + "\n        value: \"" + variable.value + "\"\n";
  }
  text +=
      "  podTemplateOverrides:\n    - targetJobs:\n        - name: node\n      spec:\n"
      "        volumes:\n          - name: plan\n            configMap:\n              name: " +
      yaml_text(options.name + "-plan") +
      "\n          # NCCL's intra-node transport needs more than the default 64 MiB.\n"
      "          - name: shm\n            emptyDir: {medium: Memory}\n"
      "        containers:\n          - name: node\n            volumeMounts:\n"
      "              - {name: plan, mountPath: /plan, readOnly: true}\n"
      "              - {name: shm, mountPath: /dev/shm}\n";
  return text;
}

}  // namespace

void export_launcher(const Plan& plan, ExportTarget target, const ExportOptions& options,
                     Export& out, Problems& problems) {
  const JobShape shape = shape_of(plan);
  if (shape.nodes * shape.gpus_per_node != plan.world_size()) {
    problems.push_back({"plan", "/roles", std::to_string(plan.world_size()) + " ranks",
                        "whole nodes of " + std::to_string(shape.gpus_per_node) + " GPUs",
                        "these launchers start equally many ranks on every node"});
    return;
  }
  if (!check_name(options.name, problems)) return;
  for (const std::string* path : {&options.run_config, &options.run_folder}) {
    if (path->find_first_of("\n\r") == path->npos) continue;
    problems.push_back({"export", "", "a line break in a path", "one line", ""});
    return;
  }
  out.files.push_back({"plan.json", to_json(plan)});
  switch (target) {
    case ExportTarget::torchrun:
      out.files.push_back({"launch.sh", torchrun_script(plan, options, shape), true});
      break;
    case ExportTarget::slurm:
      out.files.push_back({"job.sbatch", slurm_script(plan, options, shape), true});
      break;
    default:
      out.files.push_back({"trainjob.yaml", train_job(plan, options, shape)});
  }
  out.notes.push_back("Put " + options.run_config +
                      " (verl's keys; what the plan does not fix) "
                      "beside the plan; tessera-run must be on PATH of every node.");
}

}  // namespace tessera
