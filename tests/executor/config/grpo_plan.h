// The sample plan without a critic: GRPO with the divergence in the loss.
#pragma once

#include "tests/planner/plan/sample_plan.h"

namespace tessera {

inline Plan grpo_plan() {
  Plan plan = sample_plan();
  plan.workload.algorithm = "grpo";
  plan.workload.kl = KlPlace::loss;
  plan.workload.dataflow = preset_dataflow("grpo", KlPlace::loss, false);
  plan.schedule = default_schedule(plan.workload);
  std::erase_if(plan.roles, [](const RolePlan& role) { return role.role == Role::critic; });
  return plan;
}

}  // namespace tessera
