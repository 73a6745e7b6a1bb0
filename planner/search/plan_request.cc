#include "planner/search/plan_request.h"

#include <algorithm>
#include <utility>

#include "planner/plan/one_step_off.h"
#include "planner/search/objective.h"
#include "planner/search/role_operations.h"
#include "planner/search/space.h"

namespace tessera {

PlanRequest request_of(const Plan& plan, Calibration calibration) {
  PlanRequest request;
  request.models = plan.models;
  request.cluster = plan.cluster;
  request.workload = plan.workload;
  request.calibration = std::move(calibration);
  request.engine = plan.engine;
  request.objective = objective_of(plan);
  request.tessera_version = plan.provenance.tessera_version;
  request.created = plan.provenance.created;
  for (const RolePlan& role : plan.roles) {
    if (role.lora.used()) request.lora.emplace(role.role, role.lora);
    if (role.role == Role::actor) request.choices = {role.fused_loss, role.host_optimizer};
  }
  return request;
}

PlanRequest priced_request_of(const Plan& plan, Calibration calibration) {
  PlanRequest request = request_of(plan, std::move(calibration));
  request.traits = traits_of(plan.engine, request.choices);
  for (const RolePlan& role : plan.roles) request.dtypes.emplace(role.role, role.dtypes);
  return request;
}

Solution solution_of(const Plan& plan) {
  Solution solution;
  solution.placement = placement_of(plan);
  for (const std::vector<Role>& block : solution.placement) {
    const std::vector<int>& ranks = plan.find(block.front())->ranks;
    solution.sizes.push_back(static_cast<int>(ranks.size()));
    solution.first_rank.push_back(*std::min_element(ranks.begin(), ranks.end()));
  }
  for (const RolePlan& role : plan.roles) {
    solution.choice.emplace(role.role, candidate_of(plan, role));
  }
  solution.policy_lag = is_one_step_off(plan.schedule) ? 1 : 0;
  return solution;
}

}  // namespace tessera
