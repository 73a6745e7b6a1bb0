// Where the ranks of a candidate's groups lie: how many, on how many nodes.
//
// Pure. Contiguous order is tp, cp, pp, dp from the fastest; megatron's tp, cp, dp, pp. The
// candidate's first rank begins a node, or its block lies inside one; where a plan deals ranks, or
// cuts stages, in another way DealtLayout says so. Of a kind's groups the one on most nodes counts:
// a step waits for the slowest.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "cost_models/collective.h"
#include "planner/request/candidate.h"
#include "planner/request/request.h"

namespace tessera {

struct CandidateGroups {
  GroupShape tp, cp;
  GroupShape replicas;    // dp cp: dense gradients and optimizer parts
  GroupShape shard;       // FSDP's gathers, where parameters are sharded
  GroupShape replicated;  // HSDP: the same shard on other replicas
  GroupShape ep;
  GroupShape expert_replicas;  // tp cp dp / (ep etp)
  GroupShape hop{2, 1};        // neighbouring stages
};

/// Nodes that each group spans at most where a plan deals its ranks in its own way; 0 = as many as
/// in dealt_order.
struct GroupNodes {
  int tp = 0, cp = 0, replicas = 0, shard = 0, replicated = 0, ep = 0, expert_replicas = 0, hop = 0;
  bool operator==(const GroupNodes&) const = default;
};

/// A layout whose ranks or stages a plan deals in its own way.
struct DealtLayout {
  Candidate layout;
  GroupNodes nodes;                // what its groups span there
  std::vector<LayerRange> stages;  // of the plan (ParallelLayout::stages); empty: layout_of's
};
/// Those of a plan, whose ranks lie or whose stages are otherwise than those of a candidate of
/// these degrees.
using Deal = std::map<Role, DealtLayout>;

/// As the engine deals the ranks of trained roles (TrainedRanks); served reward models lie as
/// rollouts do.
RankOrder dealt_order(const Candidate& candidate, const EngineTraits& traits);

/// In dealt_order, on the request's cluster and for its engine.
CandidateGroups groups_of(const Candidate& candidate, const PlanRequest& request);

/// What `own` groups span that `dealt` ones do not.
GroupNodes nodes_of(const CandidateGroups& own, const CandidateGroups& dealt);
CandidateGroups with_nodes(CandidateGroups groups, const GroupNodes& nodes);

/// The bytes of a rank that would leave it in the time of the busiest link out of a trained role's
/// nodes, were every rank to send as much: of its own port, its card or its node's uplink, where a
/// rank of each stage sends `by_stage`.
double busiest_link(const std::vector<double>& by_stage, const Candidate& candidate,
                    const PlanRequest& request);

/// Ranks over which FSDP cuts each parameter; 1 = they are whole. With one mesh of all GPUs
/// (ShardTraits::over_context) Ulysses' groups are among them.
int shard_ranks(const Candidate& candidate, const EngineTraits& traits);

/// The part of the model that `gpus` ranks hold together, which follow one another: those of a
/// node, or behind a link of one. Its stages, which are neighbours unless the pipeline is the
/// slowest axis, and of them shards or experts.
double share_of(std::int64_t gpus, const Candidate& actor, const PlanRequest& request);
/// Bytes of a rank that it reads from a copy of the model, as far as they are not where it is.
MovedBytes spread_over_copy(Traffic bytes, const Candidate& actor, const PlanRequest& request);

}  // namespace tessera
