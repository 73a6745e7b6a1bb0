#include "planner/pricing/role/groups.h"

#include <algorithm>

#include "planner/engines/engine.h"
#include "planner/request/candidate.h"

namespace tessera {

RankOrder dealt_order(const Candidate& candidate, std::string_view engine) {
  const bool trained = candidate.role != Role::rollout && candidate.role != Role::reward;
  const bool megatron = engine_named(engine).trained_ranks == TrainedRanks::megatron;
  return megatron && trained ? RankOrder::megatron : training_order(candidate);
}

CandidateGroups with_nodes(CandidateGroups groups, const GroupNodes& nodes) {
  const auto set = [](int own, int& spanned) {
    if (own > 0) spanned = own;
  };
  set(nodes.tp, groups.tp.nodes);
  set(nodes.cp, groups.cp.nodes);
  set(nodes.replicas, groups.replicas.nodes);
  set(nodes.shard, groups.shard.nodes);
  set(nodes.replicated, groups.replicated.nodes);
  set(nodes.ep, groups.ep.nodes);
  set(nodes.expert_replicas, groups.expert_replicas.nodes);
  set(nodes.hop, groups.hop_nodes);
  return groups;
}

int shard_ranks(const Candidate& candidate, const EngineTraits& traits) {
  if (!traits.shards.over_context) return candidate.dp_shard;
  return candidate.zero == 3 ? candidate.dp_shard * candidate.cp : 1;
}

CandidateGroups groups_of(const Candidate& candidate, const PlanRequest& request) {
  const bool megatron = dealt_order(candidate, request.engine) == RankOrder::megatron;
  const auto per_node = static_cast<int>(request.cluster.gpus_per_node);
  const int block = candidate.tp * candidate.cp;
  const int stride = megatron ? block : block * candidate.pp;  // of dp
  const auto shape = [&](int count, int step, int rest = 0) {
    const int last = (count - 1) * step + rest;
    return GroupShape{count, std::min(count, last / per_node + 1)};
  };
  CandidateGroups groups;
  groups.tp = {candidate.tp, (candidate.tp + per_node - 1) / per_node};
  groups.cp = shape(candidate.cp, candidate.tp);
  groups.replicas = shape(candidate.dp, stride, (candidate.cp - 1) * candidate.tp);
  groups.replicas.ranks = candidate.dp * candidate.cp;
  if (candidate.cp > 1) {
    const int last = (candidate.dp - 1) * stride + (candidate.cp - 1) * candidate.tp;
    groups.replicas.nodes = std::min(groups.replicas.ranks, last / per_node + 1);
  }
  groups.shard = shape(candidate.dp_shard, stride);
  if (request.traits.shards.over_context && candidate.cp > 1) {
    const int last = (candidate.dp_shard - 1) * stride + (candidate.cp - 1) * candidate.tp;
    const int ranks = candidate.dp_shard * candidate.cp;
    groups.shard = {ranks, std::min(ranks, last / per_node + 1)};
  }
  groups.replicated = shape(candidate.dp / candidate.dp_shard, stride * candidate.dp_shard);
  const int experts = candidate.ep * candidate.etp;
  if (experts > block) {  // blocks of neighbours, one of each replica
    groups.ep = shape((experts + block - 1) / block, stride, block - 1);
    groups.ep.ranks = candidate.ep;
  } else {
    groups.ep = shape(candidate.ep, candidate.etp);
  }
  const int copies = std::max(1, block * candidate.dp / experts);
  groups.expert_replicas = shape(copies, std::max(experts, 1) * stride / block);
  const int reach = megatron ? block * candidate.dp * candidate.pp : block * candidate.pp;
  groups.hop_nodes = reach > per_node ? 2 : 1;
  return groups;
}

GroupNodes nodes_of(const CandidateGroups& own, const CandidateGroups& dealt) {
  const auto other = [](int nodes, int as_dealt) { return nodes == as_dealt ? 0 : nodes; };
  return {.tp = other(own.tp.nodes, dealt.tp.nodes),
          .cp = other(own.cp.nodes, dealt.cp.nodes),
          .replicas = other(own.replicas.nodes, dealt.replicas.nodes),
          .shard = other(own.shard.nodes, dealt.shard.nodes),
          .replicated = other(own.replicated.nodes, dealt.replicated.nodes),
          .ep = other(own.ep.nodes, dealt.ep.nodes),
          .expert_replicas = other(own.expert_replicas.nodes, dealt.expert_replicas.nodes),
          .hop = other(own.hop_nodes, dealt.hop_nodes)};
}

}  // namespace tessera
