#include "planner/pricing/plan_pricing.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "cost_models/documents/problem.h"
#include "planner/engines/engine.h"
#include "planner/plan/plan.h"
#include "planner/request/plan_request.h"

namespace tessera {

namespace {

// From each rank to that of the next stage.
std::vector<std::pair<int, int>> messages_of(const RankMap& map) {
  std::map<std::array<int, 5>, int> rank_at;
  const auto key = [](const RankCoord& at, int stage) {
    return std::array{at.tp, at.cp, stage, at.dp_replicate, at.dp_shard};
  };
  for (std::size_t i = 0; i < map.ranks.size(); ++i) {
    rank_at[key(map.coords[i], map.coords[i].pp)] = map.ranks[i];
  }
  std::vector<std::pair<int, int>> messages;
  for (std::size_t i = 0; i < map.ranks.size(); ++i) {
    const auto next = rank_at.find(key(map.coords[i], map.coords[i].pp + 1));
    if (next != rank_at.end()) messages.emplace_back(map.ranks[i], next->second);
  }
  return messages;
}

// Messages from each stage to the next, all at once, that leave the GPUs behind one of `link` for
// others of their node: of those of which most do.
int hops_over(const SharedLink& link, int per_node, const RankMap& map) {
  if (link.gpus == 0) return 0;
  std::map<std::pair<int, std::int64_t>, int> leaving;  // by node and link
  int most = 0;
  for (const auto& [from, to] : messages_of(map)) {
    if (from / per_node != to / per_node) continue;
    const std::int64_t behind = from % per_node / link.gpus;
    if (behind == to % per_node / link.gpus) continue;
    most = std::max(most, ++leaving[{from / per_node, behind}]);
  }
  return most;
}

std::vector<int> ranks_on(const std::map<int, std::vector<int>>& nodes, int per_node) {
  std::vector<int> ranks;
  for (const auto& [node, places] : nodes) {
    for (const int place : places) ranks.push_back(node * per_node + place);
  }
  return ranks;
}

using Key = std::array<int, 5>;

// Of all groups of ranks with equal keys, the one on most nodes.
template <class KeyOf>
GroupShape widest_group(const ClusterSpec& cluster, const RankMap& map, const KeyOf& key_of) {
  const auto per_node = static_cast<int>(cluster.gpus_per_node);
  std::map<Key, std::map<int, std::vector<int>>> groups;  // places by node
  for (std::size_t i = 0; i < map.ranks.size(); ++i) {
    groups[key_of(map.coords[i])][map.ranks[i] / per_node].push_back(map.ranks[i] % per_node);
  }
  GroupShape shape{0, 0};
  for (const auto& [key, nodes] : groups) {
    int count = 0;
    for (const auto& [node, places] : nodes) {
      count += static_cast<int>(places.size());
      if (cluster.shares_within()) shape = with_crossings(shape, cluster, places);
    }
    shape.ranks = std::max(shape.ranks, count);
    shape.nodes = std::max(shape.nodes, static_cast<int>(nodes.size()));
  }
  if (shape.nodes <= 1 || !has_leaves(cluster)) return shape;
  std::vector<std::vector<int>> listed;
  for (const auto& [key, nodes] : groups) listed.push_back(ranks_on(nodes, per_node));
  shape.leaves = counted_leaf_shares(cluster, listed);
  return shape;
}

}  // namespace

CandidateGroups groups_of(const Plan& plan, const RolePlan& role, const RankMap& map) {
  const auto per_node = static_cast<int>(plan.cluster.gpus_per_node);
  const auto widest = [&](const auto& key_of) { return widest_group(plan.cluster, map, key_of); };
  const ParallelLayout& layout = role.layout;
  const bool context_shards = traits_of(plan.engine, {}).shards.over_context;
  CandidateGroups groups;
  groups.tp = widest([](const RankCoord& at) {
    return Key{at.cp, at.pp, at.dp_replicate, at.dp_shard};
  });
  groups.cp = widest([](const RankCoord& at) {
    return Key{at.tp, at.pp, at.dp_replicate, at.dp_shard};
  });
  groups.shard = widest([&](const RankCoord& at) {
    return Key{at.tp, at.pp, at.dp_replicate, context_shards ? 0 : at.cp};
  });
  groups.replicated = widest([](const RankCoord& at) {
    return Key{at.tp, at.cp, at.pp, at.dp_shard};
  });
  groups.replicas = widest([](const RankCoord& at) { return Key{at.tp, at.pp}; });
  groups.ep = widest([&](const RankCoord& at) {
    const ExpertCoord expert = expert_coord(layout, at);
    return Key{at.pp, expert.etp, expert.edp};
  });
  groups.expert_replicas = widest([&](const RankCoord& at) {
    const ExpertCoord expert = expert_coord(layout, at);
    return Key{at.pp, expert.etp, expert.ep};
  });
  const GroupShape replica = widest([](const RankCoord& at) {
    return Key{at.dp_replicate, at.dp_shard};
  });
  if (layout.pp > 1 && replica.nodes > 1) {
    groups.hop.nodes = 2;
    if (has_leaves(plan.cluster)) {
      groups.hop.leaves.ring = counted_leaf_share(plan.cluster, messages_of(map));
    }
  }
  if (layout.pp > 1 && plan.cluster.shares_within()) {
    groups.hop.over_switch = hops_over(plan.cluster.pcie_switch, per_node, map);
    groups.hop.over_socket = hops_over(plan.cluster.socket, per_node, map);
  }
  return groups;
}

GroupNodes nodes_of(const Plan& plan, const RolePlan& role, const PlanRequest& request) {
  // A strided rollout's groups lie inside the actor's, as the search takes them to.
  if (role.ranks.empty() || role.rank_order == RankOrder::strided) return {};
  const Candidate candidate = candidate_of(plan, role);
  const std::int64_t node = plan.cluster.gpus_per_node;
  const int first = role.ranks.front(), last = role.ranks.back();
  const bool dealt = role.rank_order == dealt_order(candidate, request.traits) &&
                     last - first + 1 == candidate.gpus &&
                     (first % node == 0 || first / node == last / node);
  if (dealt) return {};
  Problems problems;
  const RankMap map =
      make_rank_map(role.rank_order, role.layout, role.ranks, nullptr, "", problems);
  if (!problems.empty()) return {};
  return nodes_of(groups_of(plan, role, map), groups_of(candidate, request));
}

Deal deal_of(const Plan& plan, const PlanRequest& request) {
  Deal deal;
  for (const RolePlan& role : plan.roles) {
    DealtLayout own{candidate_of(plan, role), nodes_of(plan, role, request), {}};
    const ParallelLayout cut = layout_of(own.layout, plan.model_of(role.role).layers);
    if (role.layout.stages != cut.stages) own.stages = role.layout.stages;
    if (own.nodes != GroupNodes{} || !own.stages.empty()) deal.emplace(role.role, std::move(own));
  }
  return deal;
}

CostEvaluator evaluator_of(const Plan& plan, const Calibration& calibration) {
  const PlanRequest request = priced_request_of(plan, calibration);
  return CostEvaluator(request, deal_of(plan, request));
}

}  // namespace tessera
