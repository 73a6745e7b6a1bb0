#include "planner/pricing/role/groups.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <utility>
#include <vector>

#include "planner/request/candidate.h"

namespace tessera {

RankOrder dealt_order(const Candidate& candidate, const EngineTraits& traits) {
  const bool trained = candidate.role != Role::rollout && candidate.role != Role::reward;
  if (!trained || traits.ranks == TrainedRanks::by_experts) return training_order(candidate);
  return traits.ranks == TrainedRanks::megatron ? RankOrder::megatron : RankOrder::contiguous;
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
  set(nodes.hop, groups.hop.nodes);
  return groups;
}

int shard_ranks(const Candidate& candidate, const EngineTraits& traits) {
  if (!traits.shards.over_context) return candidate.dp_shard;
  return candidate.zero == 3 ? candidate.dp_shard * candidate.cp : 1;
}

namespace {

// Ranks `step` apart along one coordinate.
struct Steps {
  int count = 1, step = 1;
};

// A group's ranks: two coordinates, the faster one first, of which one may have a single value.
struct Members {
  Steps inner, outer;

  int count() const { return inner.count * outer.count; }
};

// Places in a node where groups may begin: those that the other coordinates lead to.
std::vector<int> beginnings(std::initializer_list<Steps> others, int per_node) {
  std::vector<bool> reached(static_cast<std::size_t>(per_node), false);
  reached[0] = true;
  for (const auto& [count, step] : others) {
    const int different = std::min(count, per_node / std::gcd(step, per_node));
    std::vector<bool> next(reached.size(), false);
    for (int place = 0; place < per_node; ++place) {
      if (!reached[static_cast<std::size_t>(place)]) continue;
      for (int i = 0; i < different; ++i) {
        next[static_cast<std::size_t>((place + static_cast<std::int64_t>(i) * step) % per_node)] =
            true;
      }
    }
    reached = std::move(next);
  }
  std::vector<int> places;
  for (int place = 0; place < per_node; ++place) {
    if (reached[static_cast<std::size_t>(place)]) places.push_back(place);
  }
  return places;
}

// Of `steps` ranks from place `first` of a node on.
int nodes_along(int first, const Steps& steps, const ClusterSpec& cluster) {
  return group_shape(cluster, steps.count, steps.step, first).nodes;
}

// Of a group whose first rank is at `first` of its node.
std::int64_t nodes_from(int first, const Members& members, const ClusterSpec& cluster) {
  const auto& [inner, outer] = members;
  if (outer.count == 1) return nodes_along(first, inner, cluster);
  if (inner.count == 1) return nodes_along(first, outer, cluster);
  const std::int64_t per_node = cluster.gpus_per_node;
  std::int64_t nodes = 0, free = 0;  // nodes from `free` on hold none of the ranks so far
  for (int i = 0; i < outer.count; ++i) {
    const std::int64_t begin = first + i * std::int64_t{outer.step};
    if (inner.step >= per_node) {
      nodes += inner.count;
      continue;
    }
    const std::int64_t last = (begin + (inner.count - 1) * std::int64_t{inner.step}) / per_node;
    nodes += std::max<std::int64_t>(0, last - std::max(free, begin / per_node) + 1);
    free = std::max(free, last + 1);
  }
  return nodes;
}

// Whether every coordinate's ranks fill a part of a node, or whole nodes: groups then lie alike.
bool fills(const Steps& steps, int per_node) {
  const int extent = steps.count * steps.step;  // no more than the role's GPUs
  return extent <= per_node ? per_node % extent == 0 : extent % per_node == 0;
}

// GPUs of a node that a group has whose first rank is at `first` of it.
std::vector<int> places_from(int first, const Members& members, int per_node) {
  std::vector<int> places;
  for (int i = 0; i < members.outer.count; ++i) {
    const std::int64_t begin = first + i * std::int64_t{members.outer.step};
    for (int j = 0; j < members.inner.count; ++j) {
      const std::int64_t place = begin + j * std::int64_t{members.inner.step};
      if (place >= per_node) break;
      places.push_back(static_cast<int>(place));
    }
    if (begin >= per_node) break;
  }
  return places;
}

// Each stage sends to the next one at once: as many messages as ranks lie between the two.
void set_crossings_of_hops(const Steps& pp, std::initializer_list<Steps> others,
                           const ClusterSpec& cluster, GroupShape& hop) {
  if (!cluster.shares_within()) return;
  const auto per_node = static_cast<int>(cluster.gpus_per_node);
  const auto set = [&](const SharedLink& link, int first, int& over) {
    if (link.gpus == 0) return;
    for (int stage = 0; stage + 1 < pp.count; ++stage) {
      const std::int64_t from = first + stage * std::int64_t{pp.step}, to = from + pp.step;
      if (from / per_node != to / per_node) continue;
      const bool crosses = from % per_node / link.gpus != to % per_node / link.gpus;
      if (!crosses) continue;
      over = static_cast<int>(
          std::min({std::int64_t{pp.step}, link.gpus, std::int64_t{per_node - pp.step}}));
    }
  };
  for (const int first : beginnings(others, per_node)) {
    set(cluster.pcie_switch, first, hop.over_switch);
    set(cluster.socket, first, hop.over_socket);
  }
}

// On most nodes of all groups of these members.
GroupShape widest(const Members& members, std::initializer_list<Steps> others,
                  const ClusterSpec& cluster) {
  GroupShape shape{members.count(), 1};
  if (shape.ranks == 1) return shape;
  const auto per_node = static_cast<int>(cluster.gpus_per_node);
  const bool alike = fills(members.inner, per_node) && fills(members.outer, per_node) &&
                     std::all_of(others.begin(), others.end(),
                                 [&](const Steps& steps) { return fills(steps, per_node); });
  if (alike) {
    shape.nodes = nodes_along(0, members.inner, cluster) * nodes_along(0, members.outer, cluster);
  } else {
    for (const int first : beginnings(others, per_node)) {
      shape.nodes = std::max(shape.nodes, static_cast<int>(nodes_from(first, members, cluster)));
    }
  }
  shape.nodes = std::min(shape.nodes, shape.ranks);
  if (!cluster.shares_within()) return shape;
  for (const int first : beginnings(others, per_node)) {
    shape = with_crossings(shape, cluster, places_from(first, members, per_node));
  }
  return shape;
}

// Experts' groups cut the ranks of a stage anew (ExpertCoord): within `block` neighbours of a
// replica, or over blocks of several.
void set_expert_groups(const Candidate& candidate, int block, Steps dp, Steps pp,
                       const ClusterSpec& cluster, CandidateGroups& groups) {
  const int etp = candidate.etp, experts = candidate.ep * etp;
  if (experts <= block) {
    const int copies = block / experts;
    groups.ep = widest({{candidate.ep, etp}, {}}, {{etp, 1}, {copies, experts}, dp, pp}, cluster);
    groups.expert_replicas = widest({{copies, experts}, dp}, {{experts, 1}, pp}, cluster);
    return;
  }
  const int blocks = std::min(candidate.dp, (experts + block - 1) / block);
  const Steps copies{candidate.dp / blocks, dp.step * blocks};
  groups.ep = widest({{block / etp, etp}, {blocks, dp.step}}, {{etp, 1}, copies, pp}, cluster);
  groups.ep.ranks = candidate.ep;
  groups.expert_replicas = widest({copies, {}}, {{block, 1}, {blocks, dp.step}, pp}, cluster);
}

}  // namespace

CandidateGroups groups_of(const Candidate& candidate, const PlanRequest& request) {
  const bool megatron = dealt_order(candidate, request.traits) == RankOrder::megatron;
  const ClusterSpec& cluster = request.cluster;
  const int block = candidate.tp * candidate.cp;
  const Steps tp{candidate.tp, 1}, cp{candidate.cp, candidate.tp};
  const Steps dp{candidate.dp, megatron ? block : block * candidate.pp};
  const Steps pp{candidate.pp, megatron ? block * candidate.dp : block};
  const Steps shards{candidate.dp_shard, dp.step};
  const Steps copies{candidate.dp / candidate.dp_shard, dp.step * candidate.dp_shard};
  CandidateGroups groups;
  groups.tp = widest({tp, {}}, {cp, dp, pp}, cluster);
  groups.cp = widest({cp, {}}, {tp, dp, pp}, cluster);
  groups.replicas = widest({cp, dp}, {tp, pp}, cluster);
  groups.shard = request.traits.shards.over_context
                     ? widest({cp, shards}, {tp, pp, copies}, cluster)
                     : widest({shards, {}}, {tp, cp, pp, copies}, cluster);
  groups.replicated = widest({copies, {}}, {tp, cp, pp, shards}, cluster);
  set_expert_groups(candidate, block, dp, pp, cluster, groups);
  const GroupShape replica = widest({{block, 1}, pp}, {dp}, cluster);
  if (candidate.pp > 1 && replica.nodes > 1) groups.hop.nodes = 2;
  if (candidate.pp > 1) set_crossings_of_hops(pp, {{block, 1}, dp}, cluster, groups.hop);
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
          .hop = other(own.hop.nodes, dealt.hop.nodes)};
}

double share_of(std::int64_t gpus, const Candidate& actor, const PlanRequest& request) {
  const auto node = static_cast<double>(gpus);
  const double block = static_cast<double>(actor.tp) * actor.cp;
  const bool apart = dealt_order(actor, request.traits) == RankOrder::megatron;
  const double stages =
      std::clamp(node / (apart ? block * actor.dp : block), 1.0, static_cast<double>(actor.pp));
  const double copy = std::max(block * actor.dp_shard,
                               static_cast<double>(actor.ep) * static_cast<double>(actor.etp));
  return stages / actor.pp * std::min(1.0, std::max(node / stages, block) / copy);
}

MovedBytes spread_over_copy(Traffic bytes, const Candidate& actor, const PlanRequest& request) {
  const ClusterSpec& cluster = request.cluster;
  const double local = share_of(cluster.gpus_per_node, actor, request);
  const auto over = [&](const SharedLink& link) {
    if (link.gpus == 0) return Traffic{};
    const double block = actor.tp * actor.cp;  // which may be wider than the link's GPUs
    const double behind = std::min(1.0, static_cast<double>(link.gpus) / block);
    return bytes * std::max(0.0, local - behind * share_of(link.gpus, actor, request));
  };
  return {bytes * local, bytes * (1 - local), over(cluster.pcie_switch), over(cluster.socket)};
}

double busiest_link(const std::vector<double>& by_stage, const Candidate& candidate,
                    const PlanRequest& request) {
  const double busiest = *std::max_element(by_stage.begin(), by_stage.end());
  const ClusterSpec& cluster = request.cluster;
  if (candidate.pp == 1 || cluster.nodes == 1) return busiest;
  const bool apart = dealt_order(candidate, request.traits) == RankOrder::megatron;
  const int block = candidate.tp * candidate.cp * (apart ? candidate.dp : 1);
  // Of the links that so many neighbours share, by the mean of those behind one.
  const auto shared_by = [&](int neighbours) {
    double most = 0;
    if (block % neighbours == 0) {  // of one stage
      for (const double own : by_stage) {
        double sum = 0;
        for (int rank = 0; rank < neighbours; ++rank) sum += own;
        most = std::max(most, sum / neighbours);
      }
      return most;
    }
    const int period = std::min(candidate.gpus, std::lcm(neighbours, block * candidate.pp));
    for (int first = 0; first < period; first += neighbours) {
      double sum = 0;
      for (int rank = first; rank < std::min(period, first + neighbours); ++rank) {
        sum += by_stage[static_cast<std::size_t>(rank / block % candidate.pp)];
      }
      most = std::max(most, sum / neighbours);
    }
    return most;
  };
  const auto per_node = static_cast<int>(cluster.gpus_per_node);
  const int cards = static_cast<int>(std::clamp<std::int64_t>(cluster.nics_per_node, 1, per_node));
  const double blocking = std::max(1.0, cluster.blocking());
  const double own = static_cast<double>(cards) / per_node / blocking;
  return std::max({own * busiest, shared_by(per_node / cards) / blocking, shared_by(per_node)});
}

}  // namespace tessera
