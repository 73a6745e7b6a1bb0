// Engines that gather every tensor whole on every rank to hand weights to the rollout (verl's
// per-tensor update_weights), and what that costs.
//
// Pure functions; bytes of one rank.
#pragma once

#include <cstdint>
#include <string_view>

#include "planner/plan/planned_reshard.h"
#include "planner/request/candidate.h"

namespace tessera {

struct Plan;

/// WholeGather of the engine: on the actor's GPUs every rank gathers, to others all is broadcast.
/// Replicas of the rollout lie on neighbouring ranks.
bool gathers_whole(std::string_view engine);

/// A rollout with a whole copy on every rank: what a gather makes of the actor, whatever the
/// rollout keeps of it.
Candidate whole_copies(Candidate rollout);

/// Ranks over which one copy of the actor's weights lies: who gathers together.
int gathering_ranks(const Candidate& actor);

/// Buckets in which gathered tensors are handed over (verl's update_weights_bucket_megabytes): the
/// engine's default, or the largest tensor in whole MiB, as stored.
std::int64_t gather_bucket_bytes(const Plan& plan);
std::int64_t gather_bucket_bytes(std::string_view engine, const ModelSpec& actor,
                                 const RoleDTypes& dtypes);

/// The largest tensor of the actor in bytes, in the type in which it is gathered.
std::int64_t largest_tensor_bytes(const Plan& plan);

/// Makes `pair`, the minimal switch of the plan's layouts, a gather that brings `received` bytes to
/// every rank; `weights` are those that a rollout rank keeps. Its lower bound stays.
void set_gathered(const Plan& plan, std::int64_t received, std::int64_t weights,
                  PlannedReshard& pair);

}  // namespace tessera
