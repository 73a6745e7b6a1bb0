// A role under one layout: everything that the prices of its candidates share.
//
// Plain values and pure functions. A RoleLayout points into the Assumptions, the RoleModel and the
// ModelParts that it was made of, which outlive it.
#pragma once

#include <boost/container_hash/hash.hpp>
#include <compare>
#include <cstddef>
#include <tuple>
#include <utility>

#include "planner/pricing/role/groups.h"
#include "planner/pricing/role/role_model.h"
#include "planner/request/candidate.h"

namespace tessera {

inline auto operator<=>(const GroupShape& a, const GroupShape& b) {
  return std::tie(a.ranks, a.nodes, a.over_switch, a.over_socket, a.leaves.ring, a.leaves.pairs) <=>
         std::tie(b.ranks, b.nodes, b.over_switch, b.over_socket, b.leaves.ring, b.leaves.pairs);
}

/// How a layer is cut and run: all but the tokens that its kernels depend on.
struct LayerCut {
  int tp = 1, cp = 1;
  int ep = 1, etp = 1;
  bool sequence_parallel = false, ulysses = false;
  Recompute recompute = Recompute::none;
  auto operator<=>(const LayerCut&) const = default;
};

/// How a layer runs: everything but the tokens that its costs depend on. Layouts whose groups have
/// the same shapes run their layers alike.
struct LayerRun : LayerCut {
  GroupShape tp_group, cp_group, ep_group;
  bool pipelined = false;    // of experts, whose messages may then run beside layers
  bool gathers = false;      // FSDP
  GroupShape dense_group;    // over which parameters or gradients of a layer move,
  GroupShape experts_group;  // those of routed experts; one rank each: nothing moves
  auto operator<=>(const LayerRun&) const = default;
};

inline std::size_t hash_value(const LayerCut& cut) {
  std::size_t seed = 0;
  for (const int value : {cut.tp, cut.cp, cut.ep, cut.etp, cut.sequence_parallel ? 1 : 0,
                          cut.ulysses ? 1 : 0, static_cast<int>(cut.recompute)}) {
    boost::hash_combine(seed, value);
  }
  return seed;
}

inline std::size_t hash_value(const LayerRun& run) {
  std::size_t seed = hash_value(static_cast<const LayerCut&>(run));
  for (const GroupShape& group :
       {run.tp_group, run.cp_group, run.ep_group, run.dense_group, run.experts_group}) {
    boost::hash_combine(seed, group.ranks);
    boost::hash_combine(seed, group.nodes + (group.over_switch << 16) + (group.over_socket << 8));
  }
  boost::hash_combine(seed, run.pipelined);
  boost::hash_combine(seed, run.gathers);
  return seed;
}

/// `groups` must be the candidate's.
LayerRun layer_run(const Candidate& candidate, const CandidateGroups& groups,
                   const EngineTraits& traits);

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
  const ShardElements* parts = nullptr;
  const std::vector<StageClass>* stages = nullptr;
  const std::vector<LayerRange>* cut = nullptr;  // a plan's own; nullptr: as layout_of cuts stages
  const LayerElements* adapters = nullptr;       // nullptr: the role has none
  const LayerRanks* ranks = nullptr;
  const LayerRanks* decoding_ranks = nullptr;  // of a rollout, without what only passes have
};

/// `groups` must be the candidate's.
RoleLayout role_layout(const Assumptions& assumed, ModelParts& parts, const Candidate& candidate,
                       const CandidateGroups& groups);

/// Elements of a stage that the role trains: all, or those of its adapters.
Elements trained_elements(const RoleLayout& layout, const StageClass& stage);

}  // namespace tessera
