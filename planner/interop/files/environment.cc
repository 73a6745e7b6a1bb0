#include "planner/interop/files/environment.h"

#include <algorithm>

#include "cost_models/spec/device/device_kind.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

bool any_tensor_parallel(const Plan& plan) {
  return std::any_of(plan.roles.begin(), plan.roles.end(), [](const RolePlan& role) {
    return role.role != Role::rollout && (role.layout.tp > 1 || role.layout.cp > 1);
  });
}

// What the plan says for Tessera's own executor and another engine must not have.
bool applies(const EnvironmentVariable& variable, ExportedProgram program) {
  if (program == ExportedProgram::tessera_run) return true;
  const std::string& name = variable.name;
  if (name == "PYTORCH_CUDA_ALLOC_CONF" || name == "PYTORCH_ALLOC_CONF") {
    return program == ExportedProgram::megatron;  // sleep modes refuse expandable segments
  }
  if (name == "CUDA_DEVICE_MAX_CONNECTIONS") return program == ExportedProgram::megatron;
  return name.rfind("OMP", 0) != 0;
}

}  // namespace

std::vector<EnvironmentVariable> environment_of(const Plan& plan, const ExportTarget& target) {
  std::vector<EnvironmentVariable> all;
  const auto set = [&](std::string name, std::string value, std::string reason) {
    const auto known = std::find_if(all.begin(), all.end(),
                                    [&](const EnvironmentVariable& v) { return v.name == name; });
    if (known == all.end()) {
      all.push_back({std::move(name), std::move(value), std::move(reason)});
    }
  };
  for (const EnvironmentVariable& variable : plan.environment) {
    if (applies(variable, target.program)) all.push_back(variable);
  }
  if (is_cpu(plan.cluster.device)) return all;
  const bool megatron = target.megatron_kernels || plan.engine == "verl-megatron";
  if (megatron && any_tensor_parallel(plan)) {
    set("CUDA_DEVICE_MAX_CONNECTIONS", "1",
        "before Blackwell, Megatron's tensor- and context-parallel overlap needs kernels to start "
        "in the order of their launch");
  }
  if (target.sleep_mode) {
    set("NCCL_CUMEM_ENABLE", "0",
        "NCCL's own virtual memory does not mix with the inference engine's sleep mode; verl sets "
        "the same for its servers");
  }
  if (target.program == ExportedProgram::verl) {
    set("NCCL_DEBUG", "WARN", "the reason of a failed collective is worth one line in the log");
    set("TOKENIZERS_PARALLELISM", "true", "as verl sets it; prompts are tokenized in the driver");
  }
  if (plan.cluster.nodes > 1 && plan.world_size() > plan.cluster.gpus_per_node) {
    set("NCCL_IB_TIMEOUT", "22",
        "a step waits for the slowest rank; the default gives up on a busy fabric after seconds");
  }
  return all;
}

}  // namespace tessera
