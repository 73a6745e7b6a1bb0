#include "planner/request/request.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace tessera {

std::string model_key(const PlanRequest& request, Role role) {
  const std::string own(name_of(role));
  const bool scores = role == Role::critic || role == Role::reward;
  return scores && request.models.contains(own) ? own : "actor";
}

ModelSpec model_of(const PlanRequest& request, Role role) {
  ModelSpec model = request.models.at(model_key(request, role)).spec;
  const bool scores = role == Role::critic || role == Role::reward;
  model.head = scores ? ModelHead::value : ModelHead::language_model;
  model.mtp = request.mtp[role];
  return model;
}

RoleDTypes dtypes_of(const PlanRequest& request, Role role) {
  if (const auto own = request.dtypes.find(role); own != request.dtypes.end()) return own->second;
  RoleDTypes dtypes;
  dtypes.param = model_of(request, role).dtype;
  dtypes.kv = dtypes.wire = dtypes.param;
  if (request.traits.gradients.narrow) dtypes.grad = dtypes.param;
  return dtypes;
}

std::vector<Role> roles_of(const Workload& workload) {
  EnumArray<Role, bool> present;
  for (const Call& call : workload.dataflow) {
    if (call.kind == CallKind::compute) continue;
    const Role role = call.kind == CallKind::generate ? Role::rollout : call.role;
    present[role] = true;
  }
  if (present[Role::rollout]) present[Role::actor] = true;  // its weights' source
  std::vector<Role> roles;
  std::copy_if(kEveryRole.begin(), kEveryRole.end(), std::back_inserter(roles),
               [&](Role role) { return present[role]; });
  return roles;
}

bool is_trained(const Workload& workload, Role role) {
  return std::any_of(workload.dataflow.begin(), workload.dataflow.end(), [&](const Call& call) {
    return call.role == role && call.kind == CallKind::train;
  });
}

std::vector<Phase> phases_of(const Workload& workload, Role role) {
  std::vector<Phase> phases;
  for (const Call& call : workload.dataflow) {
    const Role runs = call.kind == CallKind::generate ? Role::rollout : call.role;
    if (runs == role && call.kind != CallKind::compute) phases.push_back(call.phase);
  }
  return phases;
}

void set_adapters(PlanRequest& request, const Lora& lora) {
  request.lora.clear();
  if (!lora.used()) return;
  for (const Role role : roles_of(request.workload)) {
    const bool adapted = role == Role::actor || role == Role::rollout || role == Role::reference;
    if (adapted) request.lora.emplace(role, lora);
  }
}

}  // namespace tessera
