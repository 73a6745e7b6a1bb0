// Engines that gather every tensor whole on every rank to hand weights to the rollout (verl's
// per-tensor update_weights), and what that costs, software included.
//
// Pure functions; bytes of one rank, seconds.
#pragma once

#include <cstdint>
#include <string_view>

#include "cost_models/calibration.h"
#include "cost_models/collective.h"
#include "cost_models/layout/rank_map.h"
#include "cost_models/spec/units.h"
#include "planner/plan/planned_reshard.h"
#include "planner/pricing/role/role_model.h"
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

/// Seconds on links in which such a group gathers `whole` bucket by bucket, without meeting first.
Seconds whole_gather_seconds(Bytes whole, Bytes bucket, GroupShape group,
                             const ClusterSpec& cluster, const Calibration& calibration);

/// `bytes` of weights in the type that travels, in that which the engine gathers (fp32 shards of
/// FSDP: twice as many as of bf16). Precondition: gathers_whole.
Bytes as_gathered(std::string_view engine, const RoleDTypes& dtypes, Bytes bytes);

/// Seconds of software in a reshard to this rollout, whatever the layouts are
/// (HandoverTraits): `shared` is on the actor's GPUs, else on GPUs of its own. Tensors are counted
/// as the rollout loads them: the checkpoint's, experts apart where it has them apart, or those of
/// adapters that move alone.
Seconds handover_seconds(const Assumptions& assumed, const RoleModel& rollout, bool shared);

/// Seconds, on the actor's GPUs, of the gather and the eviction before a handover that
/// HandoverTraits states. Depends on the actor's layout and ZeRO stage.
Seconds seconds_before_handover(const Assumptions& assumed, const ModelSpec& model,
                                const Candidate& actor);

/// Buckets in which gathered tensors are handed over (verl's update_weights_bucket_megabytes): the
/// size that is asked for, or the engine's default, or the largest tensor in whole MiB, as stored.
Bytes gather_bucket_bytes(const Plan& plan, Bytes asked = {});
Bytes gather_bucket_bytes(std::string_view engine, const ModelSpec& actor, const RoleDTypes& dtypes,
                          Bytes asked = {});

/// The largest tensor of the actor in bytes, in the type in which it is gathered.
Bytes largest_tensor_bytes(const Plan& plan);

/// As ranks keep weights where ZeRO-3 cuts them over Ulysses' groups too: those are no replicas.
RankMap sharded_over_context(RankMap map);

/// Bytes that a gather brings.
struct GatheredBytes {
  Bytes busiest, all;  // to the rank that has least of the weights, and to all ranks together
};
/// Of `pair`, to the ranks that hold its weights: each gets what it does not keep itself.
/// Precondition: gathers_whole(plan.engine).
GatheredBytes gathered_bytes(const Plan& plan, const PlannedReshard& pair);

/// Makes `pair`, the minimal reshard of its layouts, a gather of these bytes; `weights` are those
/// that a rollout rank keeps. Its lower bound stays.
void set_gathered(const Plan& plan, GatheredBytes received, Bytes weights, PlannedReshard& pair);

}  // namespace tessera
