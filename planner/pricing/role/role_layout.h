// A role under one layout: everything that the prices of its candidates share.
//
// Plain values and pure functions. A RoleLayout points into the Assumptions, the RoleModel and the
// ModelParts that it was made of, which outlive it.
#pragma once

#include "planner/pricing/role/groups.h"
#include "planner/pricing/role/role_model.h"
#include "planner/request/candidate.h"

namespace tessera {

/// How a layer runs: everything but the tokens that its costs depend on. Degrees that they do not
/// depend on are 1.
struct LayerRun : Degrees {
  bool sequence_parallel = false, ulysses = false;
  bool reduces_layers = false;  // ZeRO-2
  bool sharded = false;         // FSDP
  bool dealt = false;           // on ranks that a plan deals in its own way
  Recompute recompute = Recompute::none;
  auto operator<=>(const LayerRun&) const = default;
};

LayerRun layer_run(const Candidate& candidate, bool dealt);

/// The candidate's layout without its stages, and with FSDP's shards as resident bytes are cut
/// (shard_ranks).
ParallelLayout shard_degrees(const Candidate& candidate, const EngineTraits& traits);

/// Whether two candidates of a role have one RoleLayout.
bool same_degrees(const Candidate& a, const Candidate& b);

/// With the token limit of calls that train, or of the others, as its only one.
Candidate in_call(Candidate candidate, bool trains);

/// 1 / the speed of a rank while the candidate's GPUs of a node work `part` of the time.
double slowdown(const Assumptions& assumed, const Candidate& candidate, double part);

struct RoleLayout {
  const Assumptions* assumed = nullptr;
  const RoleModel* model = nullptr;
  CandidateGroups groups;
  bool dealt = false;  // `groups` are those of a plan that deals ranks in its own way
  const ShardElements* parts = nullptr;
  const std::vector<StageClass>* stages = nullptr;
  const LayerElements* adapters = nullptr;  // nullptr: the role has none
  const LayerRanks* ranks = nullptr;
  const LayerRanks* decoding_ranks = nullptr;  // of a rollout, without what only passes have
};

/// `groups` must be the candidate's.
RoleLayout role_layout(const Assumptions& assumed, ModelParts& parts, const Candidate& candidate,
                       const CandidateGroups& groups, bool dealt);

/// Elements of a stage that the role trains: all, or those of its adapters.
Elements trained_elements(const RoleLayout& layout, const StageClass& stage);

}  // namespace tessera
