// What the planner is asked: models, cluster, workload, engine, what is fixed, what is minimised.
//
// Plain values and pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/adapters.h"
#include "cost_models/calibration.h"
#include "cost_models/engine_traits.h"
#include "cost_models/memory.h"
#include "cost_models/reshard/travel.h"
#include "planner/engines/choices.h"
#include "planner/engines/memory_accuracy.h"
#include "planner/plan/model_source.h"
#include "planner/request/objective.h"
#include "planner/request/risk.h"
#include "planner/request/settings.h"

namespace tessera {

struct PlanRequest {
  std::map<std::string, ModelSource> models;  // "actor"; "critic", "reward" where they differ
  ClusterSpec cluster;
  Workload workload;  // resolved: with its dataflow
  Calibration calibration;
  std::string engine{kOwnEngine};
  EngineChoices choices;
  EngineTraits traits;                   // of that engine (traits_of)
  std::map<Role, Lora> lora;             // of roles with adapters
  EnumArray<Role, MtpUse> mtp;           // of actor and rollout (RolePlan::mtp)
  std::optional<MemoryAccuracy> memory;  // instead of the engine's
  std::map<Role, RoleDTypes> dtypes;     // instead of dtypes_of's; empty = the model's
  FixedSettings fixed;
  Objective objective = Objective::step_time;
  double risk = kDefaultRisk;  // that a plan may run out of memory with (memory_limit.h)
  /// A rollout with GPUs of its own may generate with the weights of the step before: another
  /// algorithm, which a plan only takes where it is allowed.
  bool one_step_off = false;
  ReshardTravel reshard;  // bucket 0: the engine's own, where it gathers whole tensors
  std::string tessera_version, created;  // for the plan's provenance
};

/// Key into PlanRequest::models of the model that a role runs.
std::string model_key(const PlanRequest& request, Role role);
/// That model, with the head that the role needs.
ModelSpec model_of(const PlanRequest& request, Role role);
/// Element types of a role: the checkpoint's for parameters, caches and messages; fp32 for the
/// rest.
RoleDTypes dtypes_of(const PlanRequest& request, Role role);

/// From now on the actor trains these adapters: the rollout has them, too, and the reference is the
/// actor without them. Roles that the workload does not have stay out.
void set_adapters(PlanRequest& request, const Lora& lora);

/// Roles that run a model in this workload, in the order of enum Role.
std::vector<Role> roles_of(const Workload& workload);
/// True when the workload trains the role.
bool is_trained(const Workload& workload, Role role);
/// Phases in which the role's model computes (gen for the rollout).
std::vector<Phase> phases_of(const Workload& workload, Role role);

}  // namespace tessera
