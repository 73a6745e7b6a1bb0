// Kubeflow's TrainJob on Kubernetes.
#include "cost_models/documents/problem.h"
#include "cost_models/spec/device/device_kind.h"
#include "planner/engines/fixed_order.h"
#include "planner/interop/files/environment.h"
#include "planner/interop/files/gpu_types.h"
#include "planner/interop/files/script.h"
#include "planner/interop/files/setting.h"
#include "planner/interop/launch/launch.h"
#include "planner/interop/launch/launch_files.h"
#include "planner/plan/plan.h"

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

// Where a TrainJob finds the plan.
constexpr const char* kPlanFolder = "/plan";

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
  if (shape.nodes > 1 && !is_cpu(plan.cluster.device)) {
    text += in + "    # RDMA pins the buffers that network cards read and write.\n" + in +
            "    securityContext: {capabilities: {add: [IPC_LOCK]}}\n";
  }
  return text + in + "    volumeMounts:\n" + in + "      - {name: plan, mountPath: " + kPlanFolder +
         ", readOnly: true}\n" + in + "      - {name: runs, mountPath: " + kRunsFolder + "}\n" +
         in + "      - {name: shm, mountPath: /dev/shm}\n";
}

// Kubeflow Trainer 2.2 and later (runtimePatches; 2.1 had podTemplateOverrides): the torch runtime
// sets PET_* on every node, which torchrun reads.
std::string train_job(const Plan& plan, const ExportTarget& target, const ExportOptions& options,
                      JobShape shape) {
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
  text += is_cpu(plan.cluster.device) ? "        cpu: " + gpus + "\n"
                                      : "        nvidia.com/gpu: " + gpus + "\n";
  text += "    command: [torchrun, --no-python, tessera-run, train]\n    args:\n";
  for (const std::string& word : {std::string(kPlanFolder) + "/plan.json", std::string("--config"),
                                  std::string(kPlanFolder) + "/run.yaml", std::string("-o"),
                                  on_runs_volume(options.run_folder)}) {
    text += "      - " + yaml_text(unexpanded(word)) + "\n";
  }
  const auto environment = environment_of(plan, target);
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
  note_before_pods(options, shape,
                   "`kubectl create configmap " + options.name +
                       "-plan --from-file=plan.json --from-file=run.yaml=" +
                       shell_word(options.run_config) + "`",
                   "models and data that run.yaml names", out);
  if (shape.nodes > 1 && !is_cpu(plan.cluster.device)) {
    out.notes.push_back(
        network_card_advice("the job") +
        "; and let the scheduler start all pods or none (the runtime's podGroupPolicy).");
  }
}

void write_kubernetes(const Plan& plan, const ExportTarget& target, const ExportOptions& options,
                      Export& out, Problems& problems) {
  if (!add_plan_file(plan, options, out, problems)) return;
  const JobShape shape = shape_of(plan);
  out.files.push_back({"trainjob.yaml", train_job(plan, target, options, shape)});
  note_train_job(plan, options, shape, out);
  note_run_config(options, out);
}

std::string type_advice(const Plan& plan) {
  return "give the job a nodeSelector for " + *types_of(plan).begin() + ".";
}

}  // namespace

ExportTarget kubernetes_target() {
  return {.name = "kubernetes",
          .meaning = "Tessera's executor as a Kubeflow TrainJob",
          .engines = {kOwnEngine, kInvariantEngine, kOwnEngineWithVllm},
          .program = ExportedProgram::tessera_run,
          .write = write_kubernetes,
          .type_advice = type_advice,
          .nodes_alike = true};
}

}  // namespace tessera
