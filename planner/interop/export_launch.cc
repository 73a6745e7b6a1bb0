// Launchers that start tessera-run on every node: torchrun, Slurm, Kubeflow's TrainJob.
#include "planner/interop/export_files.h"
#include "planner/plan/plan_json.h"

namespace tessera {
namespace {

// Kubernetes replaces $(NAME) in arguments and values by a variable; "$$" stands for "$".
std::string unexpanded(const std::string& text) {
  std::string escaped;
  for (std::size_t i = 0; i < text.size(); ++i) {
    escaped += text[i];
    if (text[i] == '$') escaped += '$';
  }
  return escaped;
}

std::string train_words(const ExportOptions& options) {
  return "train plan.json --config " + shell_word(options.run_config) + " -o " +
         shell_word(options.run_folder);
}

// A DNS label that begins with a letter (RFC 1035): what a TrainJob's definition asks for, and
// Slurm accepts.
bool check_name(const std::string& name, Problems& problems) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  bool good = !name.empty() && name.size() <= 63 && letter(name.front()) && name.back() != '-';
  for (const char c : name) good = good && allowed(c);
  if (!good) {
    problems.push_back({"--name", "", "'" + name + "'",
                        "at most 63 lower-case letters, digits and '-', a letter first",
                        "a job's name"});
  }
  return good;
}

std::string torchrun_script(const Plan& plan, const ExportOptions& options, JobShape shape) {
  const std::string where =
      shape.nodes == 1
          ? "Starts the plan's ranks on this node."
          : "Starts the plan's ranks on this node. Run it on every node with NODE_RANK "
            "from 0 and MASTER_ADDR, a name of the first that all reach.";
  return script_head(plan, where) + export_lines(environment_of(plan, ExportTarget::torchrun)) +
         rendezvous_lines(shape) + "\ncd \"$(dirname \"$0\")\"\nexec torchrun --no-python " +
         torchrun_shape(shape) + " \\\n  tessera-run " + train_words(options) + " \"$@\"\n";
}

// --mem=0 is all of a node's memory: --exclusive alone takes all CPUs and GPUs, but only the
// partition's default memory (sbatch(1), --exclusive).
std::string slurm_script(const Plan& plan, const ExportOptions& options, JobShape shape) {
  const std::string gpus = std::to_string(shape.gpus_per_node);
  std::string text = "#!/usr/bin/env bash\n#SBATCH --job-name=" + options.name +
                     "\n#SBATCH --nodes=" + std::to_string(shape.nodes) +
                     "\n#SBATCH --ntasks-per-node=" + gpus;
  if (plan.cluster.device.name != "cpu") text += "\n#SBATCH --gpus-per-node=" + gpus;
  text += "\n#SBATCH --exclusive\n#SBATCH --mem=0\n#SBATCH --output=%x-%j.log\n";
  text += comment_lines("Starts the plan's ranks by srun, one task per GPU. Made by tessera " +
                        plan.provenance.tessera_version +
                        "; submit it in this folder: sbatch job.sbatch. A cluster that asks for an "
                        "account, a partition or a time limit takes them there, too.");
  text += "set -euo pipefail\n\n";
  text += export_lines(environment_of(plan, ExportTarget::slurm));
  text += comment_lines("Ranks meet on the job's first node, at a port that follows from the job.");
  text +=
      "hosts=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\")\n"
      "MASTER_ADDR=${hosts%%$'\\n'*}\n"
      "MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))\nexport MASTER_ADDR MASTER_PORT\n\n";
  text += comment_lines(
      "A rank keeps all cores of its node: bound to one, its data loading and the host's part of "
      "an "
      "optimizer would share it.");
  return text + "srun --kill-on-bad-exit=1 --cpu-bind=none tessera-run " + train_words(options) +
         "\n";
}

// Where a TrainJob finds the plan, and where it leaves its results.
constexpr const char* kPlanFolder = "/plan";
constexpr const char* kRunsFolder = "/runs";

// What a pod of the runtime gets in addition: the plan, a place for results, shared memory.
std::string pod_patch(const Plan& plan, const ExportOptions& options, JobShape shape) {
  const std::string plan_name = yaml_text(options.name + "-plan");
  const std::string runs_name = yaml_text(options.name + "-runs");
  std::string text =
      "  runtimePatches:\n"
      "    - manager: tessera\n"
      "      trainingRuntimeSpec:\n        template:\n          spec:\n"
      "            replicatedJobs:\n              - name: node\n"
      "                template:\n                  spec:\n"
      "                    template:\n                      spec:\n";
  const std::string in = "                        ";
  text += in + "volumes:\n" + in + "  - name: plan\n" + in + "    configMap: {name: " + plan_name +
          "}\n" + in + "  - name: runs\n" + in +
          "    persistentVolumeClaim: {claimName: " + runs_name + "}\n" + in +
          "  # NCCL's transport inside a node needs more than a container's default 64 MiB.\n" +
          in + "  - name: shm\n" + in + "    emptyDir: {medium: Memory}\n";
  text += in + "containers:\n" + in + "  - name: node\n";
  if (shape.nodes > 1 && plan.cluster.device.name != "cpu") {
    text += in + "    # RDMA pins the buffers that network cards read and write.\n" + in +
            "    securityContext: {capabilities: {add: [IPC_LOCK]}}\n";
  }
  return text + in + "    volumeMounts:\n" + in + "      - {name: plan, mountPath: " + kPlanFolder +
         ", readOnly: true}\n" + in + "      - {name: runs, mountPath: " + kRunsFolder + "}\n" +
         in + "      - {name: shm, mountPath: /dev/shm}\n";
}

// Kubeflow Trainer 2.2 and later (runtimePatches; 2.1 had podTemplateOverrides): the torch runtime
// sets PET_* on every node, which torchrun reads.
std::string train_job(const Plan& plan, const ExportOptions& options, JobShape shape) {
  const std::string gpus = std::to_string(shape.gpus_per_node);
  const std::string image = options.image.empty() ? "tessera:latest" : options.image;
  std::string text = comment_lines(
      "Kubeflow TrainJob (Trainer 2.2 or later): the runtime torch-distributed sets PET_NNODES, "
      "PET_NPROC_PER_NODE, PET_NODE_RANK, PET_MASTER_ADDR and PET_MASTER_PORT, which torchrun "
      "reads. NOTES.md says what has to be there before.");
  text += "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata:\n  name: " +
          yaml_text(options.name) +
          "\nspec:\n  runtimeRef:\n    name: torch-distributed\n  trainer:\n";
  text += "    image: " + yaml_text(image) + "\n    numNodes: " + std::to_string(shape.nodes) +
          "\n    numProcPerNode: " + gpus + "\n    resourcesPerNode:\n      limits:\n";
  text += plan.cluster.device.name == "cpu" ? "        cpu: " + gpus + "\n"
                                            : "        nvidia.com/gpu: " + gpus + "\n";
  text += "    command: [torchrun, --no-python, tessera-run, train]\n    args:\n";
  const bool absolute = options.run_folder.starts_with('/');
  for (const std::string& word :
       {std::string(kPlanFolder) + "/plan.json", std::string("--config"),
        std::string(kPlanFolder) + "/run.yaml", std::string("-o"),
        (absolute ? "" : std::string(kRunsFolder) + "/") + options.run_folder}) {
    text += "      - " + yaml_text(unexpanded(word)) + "\n";
  }
  const auto environment = environment_of(plan, ExportTarget::kubernetes);
  if (!environment.empty()) text += "    env:\n";
  for (const EnvironmentVariable& variable : environment) {
    text += comment_lines(variable.reason, "      # ");
    text += "      - name: " + variable.name +
            "\n        value: " + yaml_string(unexpanded(variable.value)) + "\n";
  }
  return text + pod_patch(plan, options, shape);
}

// What a TrainJob refers to and cannot bring.
void note_train_job(const Plan& plan, const ExportOptions& options, JobShape shape, Export& out) {
  const std::string& name = options.name;
  out.notes.push_back(
      "Before: `kubectl create configmap " + name +
      "-plan --from-file=plan.json --from-file=run.yaml=" + shell_word(options.run_config) +
      "`, and a PersistentVolumeClaim " + name + "-runs" +
      (shape.nodes > 1 ? " that several nodes may write (ReadWriteMany)" : "") +
      "; models and data that run.yaml names can lie on it, too, under " + kRunsFolder + ".");
  if (shape.nodes > 1 && plan.cluster.device.name != "cpu") {
    out.notes.push_back(
        "Several nodes: give the job the cluster's RDMA resource (its name depends on the device "
        "plugin: rdma/hca_shared_devices_a, say) beside nvidia.com/gpu, or NCCL falls back to "
        "TCP; and let the scheduler start all pods or none (the runtime's podGroupPolicy).");
  }
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
      note_train_job(plan, options, shape, out);
  }
  out.notes.push_back("Put " + options.run_config +
                      " (verl's keys; what the plan does not fix) "
                      "beside the plan; tessera-run must be on PATH of every node.");
}

}  // namespace tessera
