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

/// Why experts cannot be trained under this layout; empty: they can. They are
/// cut as the rest is (etp = tp), or whole where sequence parallelism gives every rank tokens of
/// its own and ep covers the tensor-parallel ranks. Beside ZeRO and FSDP no two of the ranks
/// that share hold the same experts.
std::string expert_refusal(const ModelSpec& model, const ParallelLayout& layout);

/// Why the own rollout cannot generate with experts so; empty: it can. They are cut as the rest is,
/// or whole where ep covers the tensor-parallel ranks; replicas that share them decode in lockstep.
std::string served_expert_refusal(const ModelSpec& model, const ParallelLayout& layout);

/// Replicas of a rollout among which experts are dealt, which decode in lockstep; 1 = each has all.
int replicas_in_lockstep(const Degrees& degrees);

}  // namespace tessera
