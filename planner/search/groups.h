// Where the ranks of a candidate's groups lie: how many, on how many nodes.
//
// Pure. Contiguous order is tp, cp, pp, dp from the fastest; megatron's tp, cp, dp, pp (request.h,
// training_order). The candidate's first rank begins a node, or its block lies inside one.
#pragma once

#include "cost_models/collective.h"
#include "planner/search/request.h"

namespace tessera {

struct CandidateGroups {
  GroupShape tp, cp;
  GroupShape replicas;    // dp cp: dense gradients and optimizer parts
  GroupShape shard;       // FSDP's gathers, where parameters are sharded
  GroupShape replicated;  // HSDP: the same shard on other replicas
  GroupShape ep;
  GroupShape expert_replicas;  // tp cp dp / (ep etp)
  int hop_nodes = 1;           // 2 where neighbouring stages are on different nodes
};

CandidateGroups groups_of(const Candidate& candidate, const ClusterSpec& cluster,
                          const EngineTraits& traits);

/// Ranks over which FSDP cuts each parameter; 1 = they are whole. With one mesh of all GPUs
/// (EngineTraits::context_shards) Ulysses' groups are among them.
int shard_ranks(const Candidate& candidate, const EngineTraits& traits);

}  // namespace tessera
