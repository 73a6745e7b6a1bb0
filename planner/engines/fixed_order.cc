#include "planner/engines/fixed_order.h"

#include "cost_models/documents/problem.h"
#include "planner/plan/plan.h"

namespace tessera {

void check_equal_tp(const Plan& plan, const std::string& file, Problems& problems) {
  const RolePlan *actor = plan.find(Role::actor), *rollout = plan.find(Role::rollout);
  if (actor == nullptr || rollout == nullptr || actor->layout.tp == rollout->layout.tp) return;
  problems.push_back(
      {file, "/roles/" + std::to_string(rollout - plan.roles.data()) + "/layout/tp",
       std::to_string(rollout->layout.tp), std::to_string(actor->layout.tp) + ", as the actor has",
       "engine '" + plan.engine + "' adds up in one order: " + std::string(kWhyEqualTp)});
}

}  // namespace tessera
