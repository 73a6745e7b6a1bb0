// Where the ranks of a candidate's groups lie: how many, on how many nodes.
//
// Pure. Contiguous order is tp, cp, pp, dp from the fastest; megatron's tp, cp, dp, pp. The
// candidate's first rank begins a node, and a leaf, or its block lies inside a node; where a plan
// deals ranks, or cuts stages, in another way DealtLayout says so. Of a kind's groups the one on
// most nodes counts: a step waits for the slowest.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
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

/// Nodes that groups of a kind span at most, and what of their bytes passes uplinks of leaves;
/// 0 nodes = both as in dealt_order.
struct GroupSpan {
  int nodes = 0;
  LeafShares leaves;
  bool operator==(const GroupSpan&) const = default;
};
/// Of each kind, where a plan deals its ranks in its own way.
struct GroupNodes {
  GroupSpan tp, cp, replicas, shard, replicated, ep, expert_replicas, hop;
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

/// The same of candidates of one request that follow one another: what the latest one has in common
/// with the next is not worked out again. One thread.
class LatestGroups {
 public:
  const CandidateGroups& of(const Candidate& candidate, const PlanRequest& request);

 private:
  std::optional<Candidate> latest_;
  bool megatron_ = false;  // the order of its ranks
  CandidateGroups groups_;
};

/// The ranks over which one copy of the weights lies, `together` of them and as many of each stage,
/// where ranks are dealt in `order`, which is contiguous or megatron's. Who of a stage has what is
/// dealt from its first rank on: tensors, then shards or experts.
GroupShape copy_group(const Candidate& candidate, int together, RankOrder order,
                      const ClusterSpec& cluster);

/// What `own` groups span that `dealt` ones do not.
GroupNodes nodes_of(const CandidateGroups& own, const CandidateGroups& dealt);
CandidateGroups with_nodes(CandidateGroups groups, const GroupNodes& nodes);

/// The bytes of a rank that would leave it in the time of the busiest link out of a trained role's
/// nodes, were every rank to send as much over uplinks: of its own port, its card or the uplink of
/// its node or leaf, where a rank of each stage sends `by_stage`.
double busiest_link(const std::vector<double>& by_stage, const Candidate& candidate,
                    const PlanRequest& request);

/// Ranks over which FSDP cuts each parameter; 1 = they are whole. With one mesh of all GPUs
/// (ShardTraits::over_context) Ulysses' groups are among them.
int shard_ranks(const Candidate& candidate, const EngineTraits& traits);

/// The part of the model that `gpus` ranks hold together, which follow one another: those of a
/// node, or behind a link of one. Its stages, which are neighbours unless the pipeline is the
/// slowest axis, and of them shards or experts.
double share_of(std::int64_t gpus, const Candidate& actor, const PlanRequest& request);
/// Of the bytes that ranks read of a copy of the model on other nodes, the part that passes the
/// busiest uplink of a leaf switch.
double leaf_share_of_copy(const Candidate& actor, const PlanRequest& request);
/// The part of a leaf's uplink that so many GPUs below it leave to one another.
double spare_uplink(std::int64_t gpus, const ClusterSpec& cluster);
/// Bytes of a rank that it reads from a copy of the model, as far as they are not where it is.
MovedBytes spread_over_copy(Traffic bytes, const Candidate& actor, const PlanRequest& request);

}  // namespace tessera
