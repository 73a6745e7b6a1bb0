#include "planner/request/describe.h"

#include "cost_models/spec/node_groups.h"
#include "planner/plan/plan.h"
#include "planner/request/plan_request.h"
#include "planner/request/settings_of_candidate.h"

namespace tessera {

std::string describe(const Placement& placement) {
  if (placement.size() == 1) return "colocated";
  std::string text;
  for (const auto& block : placement) {
    std::string roles;
    for (const Role role : block) {
      if (role == Role::rollout && block.size() > 1) continue;
      roles += (roles.empty() ? "" : "+") + std::string(name_of(role));
    }
    text += (text.empty() ? "" : " | ") + roles;
  }
  return text;
}

std::string describe_layout(const Candidate& candidate) {
  const Role role = candidate.role;
  std::string text = "tp" + std::to_string(candidate.tp);
  const auto degree = [&](const char* name, int value) {
    if (value > 1) text += " " + std::string(name) + std::to_string(value);
  };
  if (role != Role::rollout || candidate.pp > 1) text += " pp" + std::to_string(candidate.pp);
  text += " dp" + std::to_string(candidate.dp);
  degree(candidate.ulysses ? "ulysses" : "cp", candidate.cp);
  degree("vpp", candidate.vpp);
  degree("ep", candidate.ep);
  degree("etp", candidate.etp);
  degree("fsdp", candidate.dp_shard);
  if (candidate.zero > 0 && candidate.dp_shard == 1) {
    text += " zero" + std::to_string(candidate.zero);
  }
  if (candidate.recompute != Recompute::none) {
    text += " recompute=" + std::string(name_of(candidate.recompute));
  }
  if (candidate.offload.parameters) {
    text += role == Role::rollout ? " unmap" : " offload=all";
  } else if (candidate.offload.optimizer) {
    text += " offload=optimizer";
  }
  return text;
}

std::string describe_layout(const Plan& plan, const RolePlan& role) {
  return describe_layout(candidate_of(plan, role));
}

std::string describe_types(const ClusterSpec& cluster, const Solution& solution) {
  std::string text;
  if (cluster.groups.empty()) return text;
  for (const int view : solution.views) {
    text += (text.empty() ? " on " : " | ") + type_name(cluster, view);
  }
  return text;
}

std::string describe(const Solution& solution) {
  std::string text;
  for (const auto& [role, candidate] : solution.choice) {
    text +=
        (text.empty() ? "" : ", ") + std::string(name_of(role)) + " " + describe_layout(candidate);
  }
  return text;
}

std::string describe_layouts(const Plan& plan) {
  std::string text;
  for (const RolePlan& role : plan.roles) {
    text += (text.empty() ? "" : ", ") + std::string(name_of(role.role)) + " " +
            describe_layout(plan, role);
  }
  return text;
}

std::string describe_placement(const Plan& plan) { return describe(placement_of(plan)); }

std::vector<std::string> settings_of(const Solution& solution) {
  FixedSettings settings;
  settings.placement = describe(solution.placement);
  for (const auto& [role, candidate] : solution.choice) {
    for (const Field field : fields_of(candidate)) {
      settings.values[{role, field}] = value_of(candidate, field);
    }
  }
  return words_of(settings);
}

}  // namespace tessera
