// A verl job with the Ray cluster that it runs on: as a job of Slurm (after verl's
// examples/slurm/ray_on_slurm.slurm), and as KubeRay's RayJob on Kubernetes.
#include "cost_models/documents/problem.h"
#include "planner/interop/files/environment.h"
#include "planner/interop/files/gpu_types.h"
#include "planner/interop/files/script.h"
#include "planner/interop/files/setting.h"
#include "planner/interop/launch/launch_files.h"
#include "planner/interop/verl/verl.h"
#include "planner/interop/verl/verl_job.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

// Ray first on the node that `head` names, then on all others; the trainer starts when all are
// there. The job ends with the trainer: Slurm ends the steps that are still running.
std::string ray_lines(JobShape shape) {
  const std::string nodes = std::to_string(shape.nodes), others = std::to_string(shape.nodes - 1);
  const std::string gpus = " --num-gpus=" + std::to_string(shape.gpus_per_node) + " --block &\n";
  const std::string on_head =
      "srun --overlap --nodes=1 --ntasks=1 --nodelist=\"$head\" --cpu-bind=none ";
  return comment_lines("Ray's head is the job's first node, its port follows from the job.") +
         "hosts=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\")\n"
         "head=${hosts%%$'\\n'*}\n"
         "port=$((20000 + SLURM_JOB_ID % 10000))\n"
         "address=$(srun --nodes=1 --ntasks=1 --nodelist=\"$head\" hostname --ip-address)\n"
         "address=${address%% *}\n" +
         on_head + "ray start --head --node-ip-address=\"$address\" --port=\"$port\"" + gpus +
         "srun --overlap --nodes=" + others + " --ntasks=" + others +
         " --exclude=\"$head\" --cpu-bind=none ray start --address=\"$address:$port\"" + gpus +
         "export RAY_ADDRESS=\"$address:$port\"\n\n" +
         comment_lines("verl counts the GPUs when it starts: all nodes have to be there.") +
         "count='import ray, sys; ray.init(logging_level=\"ERROR\"); "
         "sys.exit(sum(node[\"Alive\"] for node in ray.nodes()) < " +
         nodes +
         ")'\n"
         "ready=\nfor _ in {1..60}; do\n  if " +
         on_head +
         "python3 -c \"$count\"; then\n    ready=1\n    break\n  fi\n  sleep 5\ndone\n"
         "if [ -z \"$ready\" ]; then\n  echo \"Ray did not start on all " +
         nodes + " nodes\" >&2\n  exit 1\nfi\n\n" + on_head + "bash run.sh\n";
}

std::string slurm_script(const Plan& plan, const ExportOptions& options, const VerlJob& job) {
  const JobShape shape = shape_of(plan);
  std::string text = "#!/usr/bin/env bash\n#SBATCH --job-name=" + options.name +
                     "\n#SBATCH --nodes=" + std::to_string(shape.nodes) +
                     "\n#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node=" +
                     std::to_string(shape.gpus_per_node) +
                     "\n#SBATCH --exclusive\n#SBATCH --mem=0\n#SBATCH --output=%x-%j.log\n";
  text += comment_lines("Starts Ray on the job's nodes and verl's trainer (run.sh) on the first. " +
                        std::string("Made by tessera ") + plan.provenance.tessera_version +
                        "; submit it in this folder: sbatch job.sbatch. A cluster that asks for an "
                        "account, a partition or a time limit takes them there, too.");
  text += "set -euo pipefail\n\n" + job.demand + (job.demand.empty() ? "" : "\n");
  if (shape.nodes == 1) return text + "srun --ntasks=1 --cpu-bind=none bash run.sh\n";
  return text + ray_lines(shape);
}

void write_slurm(const Plan& plan, const ExportTarget& target, const ExportOptions& options,
                 Export& out, Problems& problems) {
  if (!check_job(plan, options, problems)) return;
  auto job = verl_job(plan, options, RayStart::by_launcher, problems);
  if (!job) return;
  out.files.push_back({"job.sbatch", slurm_script(plan, options, *job), true});
  out.files.push_back(verl_run_script(plan, target, *job));
  add_files_beside(*job, out);
  out.notes = std::move(job->made.notes);
  out.notes.emplace_back(
      "verl, and Ray's command line, must be on PATH of every node (or in a container that the "
      "three srun lines name).");
}

// Where the pods of a RayJob find the script.
constexpr const char* kJobFolder = "/job";

// A pod template, indented by `in`. All nodes are alike; `container` is the name that KubeRay
// knows.
std::string pod(const Plan& plan, const ExportOptions& options, const VerlJob& job,
                const std::string& container, const std::string& in) {
  const JobShape shape = shape_of(plan);
  const std::string image = options.image.empty() ? "verl:latest" : options.image;
  std::string text =
      in + "template:\n" + in + "  spec:\n" + in + "    containers:\n" + in +
      "      - name: " + container + "\n" + in + "        image: " + yaml_text(image) + "\n" + in +
      "        resources:\n" + in +
      "          limits: {nvidia.com/gpu: " + std::to_string(shape.gpus_per_node) + "}\n";
  if (!job.demand.empty()) {
    text += in + "        envFrom:\n" + in +
            "          - configMapRef: {name: " + yaml_text(options.name + "-env") + "}\n";
  }
  if (shape.nodes > 1) {
    text += in + "        # RDMA pins the buffers that network cards read and write.\n" + in +
            "        securityContext: {capabilities: {add: [IPC_LOCK]}}\n";
  }
  text += in + "        volumeMounts:\n" + in + "          - {name: job, mountPath: " + kJobFolder +
          ", readOnly: true}\n" + in + "          - {name: runs, mountPath: " + kRunsFolder +
          "}\n" + in + "          - {name: shm, mountPath: /dev/shm}\n";
  text += in + "    volumes:\n" + in + "      - name: job\n" + in +
          "        configMap: {name: " + yaml_text(options.name + "-job") + "}\n" + in +
          "      - name: runs\n" + in +
          "        persistentVolumeClaim: {claimName: " + yaml_text(options.name + "-runs") +
          "}\n" + in +
          "      # Ray's object store and NCCL need more than a container's 64 MiB.\n" + in +
          "      - name: shm\n" + in + "        emptyDir: {medium: Memory}\n";
  return text;
}

// KubeRay 1.1 and later (ray.io/v1). The submitter waits until every pod is ready.
std::string ray_job(const Plan& plan, const ExportOptions& options, const VerlJob& job) {
  const JobShape shape = shape_of(plan);
  const std::string start =
      "rayStartParams: {num-gpus: \"" + std::to_string(shape.gpus_per_node) + "\"}\n";
  std::string text = comment_lines(
      "KubeRay's RayJob: a Ray cluster of the plan's nodes, and verl's trainer on its head. "
      "NOTES.md says what has to be there before.");
  text +=
      "apiVersion: ray.io/v1\nkind: RayJob\nmetadata:\n  name: " + yaml_text(options.name) +
      "\nspec:\n  entrypoint: bash " + kJobFolder +
      "/run.sh\n  shutdownAfterJobFinishes: true\n  rayClusterSpec:\n    headGroupSpec:\n      " +
      start + pod(plan, options, job, "ray-head", "      ");
  if (shape.nodes == 1) return text;
  const std::string others = std::to_string(shape.nodes - 1);
  return text + "    workerGroupSpecs:\n      - groupName: node\n        replicas: " + others +
         "\n        minReplicas: " + others + "\n        maxReplicas: " + others + "\n        " +
         start + pod(plan, options, job, "ray-worker", "        ");
}

void note_ray_job(const Plan& plan, const ExportOptions& options, const VerlJob& job, Export& out) {
  const JobShape shape = shape_of(plan);
  std::string literals;
  for (const VerlVariable& variable : job.made.variables) {
    if (literals.find("=" + variable.name + "=") != literals.npos) continue;
    literals += " --from-literal=" + variable.name + "=...";
  }
  const std::string create = "`kubectl create configmap " + options.name;
  note_before_pods(options, shape,
                   create + "-job --from-file=run.sh`" +
                       (literals.empty() ? "" : ", " + create + "-env" + literals + "`"),
                   "models and data", out);
  if (shape.nodes > 1) out.notes.push_back(network_card_advice("the pods") + ".");
}

void write_kubernetes(const Plan& plan, const ExportTarget& target, const ExportOptions& options,
                      Export& out, Problems& problems) {
  if (!check_job(plan, options, problems)) return;
  auto job = verl_job(plan, options, RayStart::by_launcher, problems);
  if (!job) return;
  const std::string folder = on_runs_volume(options.run_folder);
  job->array += comment_lines("Where pods come and go, checkpoints lie on the volume.") +
                "overrides+=(" +
                shell_word(hydra_override(
                    {"trainer.default_local_dir", node_of(std::string_view(folder)), "", false})) +
                ")\n";
  out.files.push_back({"rayjob.yaml", ray_job(plan, options, *job)});
  out.files.push_back(verl_run_script(plan, target, *job));
  add_files_beside(*job, out);
  note_ray_job(plan, options, *job, out);
  out.notes.insert(out.notes.end(), job->made.notes.begin(), job->made.notes.end());
}

}  // namespace

ExportTarget verl_slurm_target() {
  ExportTarget target = ray_target();
  target.name = "slurm";
  target.meaning = "verl on Ray under srun";
  target.write = write_slurm;
  return target;
}

ExportTarget verl_kubernetes_target() {
  ExportTarget target = ray_target();
  target.name = "kubernetes";
  target.meaning = "verl as a KubeRay RayJob";
  target.write = write_kubernetes;
  target.nodes_alike = true;
  return target;
}

}  // namespace tessera
