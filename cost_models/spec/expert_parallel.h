// What Tessera's own executor runs of a model with routed experts.
//
// Pure; planner and executor refuse by the same rules.
#pragma once

#include <string>

#include "cost_models/spec/model_spec.h"
#include "cost_models/spec/parallel_layout.h"

namespace tessera {

/// Why its layers cannot run as they are; empty: they can.
std::string model_refusal(const ModelSpec& model);

/// Whether routed experts lie on the ranks of a stage otherwise than the rest of a layer: dealt
/// out, or cut into fewer parts. Other ranks are then replicas of them than of the rest.
bool experts_apart(const ModelSpec& model, const ParallelLayout& layout);

/// Why experts cannot be trained under this layout; empty: they can. They are
/// cut as the rest is (etp = tp), or into fewer parts where sequence parallelism gives every etp
/// of the tensor-parallel ranks tokens of their own. Beside ZeRO and FSDP no two of the ranks
/// that share hold the same experts where these lie apart.
std::string expert_refusal(const ModelSpec& model, const ParallelLayout& layout);

/// Why the own rollout cannot generate with experts so; empty: it can. etp divides tp, and
/// those that hold all experts together are parts of a replica, or whole replicas, which decode in
/// lockstep.
std::string served_expert_refusal(const ModelSpec& model, const ParallelLayout& layout);

/// Replicas of a rollout among which experts are dealt, which decode in lockstep; 1 = each has all.
int replicas_in_lockstep(const Degrees& degrees);

}  // namespace tessera
