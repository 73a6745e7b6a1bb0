#include "planner/pricing/role/groups.h"

#include <algorithm>
#include <boost/container/small_vector.hpp>
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
  const auto set = [](const GroupSpan& own, GroupShape& group) {
    if (own.nodes == 0) return;
    group.nodes = own.nodes;
    group.leaves = own.leaves;
  };
  set(nodes.tp, groups.tp);
  set(nodes.cp, groups.cp);
  set(nodes.replicas, groups.replicas);
  set(nodes.shard, groups.shard);
  set(nodes.replicated, groups.replicated);
  set(nodes.ep, groups.ep);
  set(nodes.expert_replicas, groups.expert_replicas);
  set(nodes.hop, groups.hop);
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
using Places = boost::container::small_vector<int, 16>;

Places beginnings(std::initializer_list<Steps> others, int per_node) {
  boost::container::small_vector<bool, 16> reached(static_cast<std::size_t>(per_node), false);
  reached[0] = true;
  for (const auto& [count, step] : others) {
    const int different = std::min(count, per_node / std::gcd(step, per_node));
    boost::container::small_vector<bool, 16> next(reached.size(), false);
    for (int place = 0; place < per_node; ++place) {
      if (!reached[static_cast<std::size_t>(place)]) continue;
      for (int i = 0; i < different; ++i) {
        next[static_cast<std::size_t>((place + static_cast<std::int64_t>(i) * step) % per_node)] =
            true;
      }
    }
    reached = std::move(next);
  }
  Places places;
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

std::int64_t gpus_of(const Members& members, std::initializer_list<Steps> others) {
  std::int64_t gpus = members.count();
  for (const Steps& steps : others) gpus *= steps.count;
  return gpus;
}

// Part of the pairs of places in a node that share a network card.
double pairs_on_a_card(const std::vector<int>& places, const ClusterSpec& cluster) {
  const std::int64_t node = cluster.gpus_per_node;
  const std::int64_t cards = std::clamp<std::int64_t>(cluster.nics_per_node, 1, node);
  std::map<std::int64_t, double> on_card;
  for (const int place : places) ++on_card[place * cards / node];
  double pairs = 0;
  for (const auto& [card, count] : on_card) pairs += count * count;
  return pairs / static_cast<double>(places.size() * places.size());
}

// A coordinate along which a group goes beyond a leaf, and its members on the way.
struct Reach {
  Steps steps;
  int members = 1;
};

Reach reach_of(const Members& members, std::int64_t leaf) {
  const auto& [inner, outer] = members;
  const std::int64_t along = std::int64_t{inner.count} * inner.step;
  if (inner.count == 1) return {outer, outer.count};
  if (outer.count == 1) return {inner, inner.count};
  if (outer.step == along) return {{members.count(), inner.step}, members.count()};
  return along > leaf ? Reach{inner, inner.count} : Reach{outer, members.count()};
}

// `first`, and as many ranks of each of the coordinates beside it.
std::vector<int> ranks_along(std::vector<int> first, std::initializer_list<Steps> coordinates) {
  for (const auto& [count, step] : coordinates) {
    const std::size_t known = first.size();
    for (int i = 1; i < count; ++i) {
      for (std::size_t rank = 0; rank < known; ++rank) first.push_back(first[rank] + i * step);
    }
  }
  return first;
}

LeafShares leaves_of(const GroupShape& shape, const Members& members,
                     std::initializer_list<Steps> others, const ClusterSpec& cluster) {
  if (shape.nodes == 1 || !has_leaves(cluster)) return {};
  const auto per_node = static_cast<int>(cluster.gpus_per_node);
  const std::int64_t leaf = cluster.nodes_per_leaf * per_node;
  const Reach reach = reach_of(members, leaf);
  const std::int64_t along = std::int64_t{members.inner.count} * members.inner.step;
  if (reach.members > reach.steps.count && along > per_node && leaf % along != 0) {
    std::vector<std::vector<int>> groups;  // whose faster coordinate lies under two switches
    for (const int first : ranks_along({0}, others)) {
      groups.push_back(ranks_along({first}, {members.inner, members.outer}));
    }
    return counted_leaf_shares(cluster, groups);
  }
  return leaf_shares(
      cluster,
      {.gpus = gpus_of(members, others),
       .ranks = static_cast<double>(shape.ranks),
       .nodes = static_cast<double>(shape.nodes),
       .step = reach.steps.step,
       .extent = std::int64_t{reach.steps.count} * reach.steps.step,
       .members = static_cast<double>(reach.members),
       .one_card =
           cluster.rails ? pairs_on_a_card(places_from(0, members, per_node), cluster) : 1.0});
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

// On rails whoever has another place in its node hangs on another switch.
LeafShares leaves_of_hops(const Steps& pp, int gpus, const ClusterSpec& cluster) {
  if (!has_leaves(cluster)) return {};
  if (cluster.rails && pp.step % cluster.gpus_per_node != 0) return {};
  const std::int64_t extent = std::int64_t{pp.count} * pp.step;
  return {.ring = leaf_share_of_messages(cluster, gpus, pp.step, extent)};
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
  shape.leaves = leaves_of(shape, members, others, cluster);
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

namespace {

// How the ranks of each coordinate lie.
struct Coordinates {
  Steps tp, cp, dp, pp;
};

Coordinates coordinates_of(const Candidate& candidate, bool megatron) {
  const int block = candidate.tp * candidate.cp;
  return {.tp = {candidate.tp, 1},
          .cp = {candidate.cp, candidate.tp},
          .dp = {candidate.dp, megatron ? block : block * candidate.pp},
          .pp = {candidate.pp, megatron ? block * candidate.dp : block}};
}

// All but those of shards and experts.
void set_dense_groups(const Candidate& candidate, const Coordinates& lie,
                      const ClusterSpec& cluster, CandidateGroups& groups) {
  const auto& [tp, cp, dp, pp] = lie;
  const int block = candidate.tp * candidate.cp;
  groups.tp = widest({tp, {}}, {cp, dp, pp}, cluster);
  groups.cp = widest({cp, {}}, {tp, dp, pp}, cluster);
  groups.replicas = widest({cp, dp}, {tp, pp}, cluster);
  groups.hop = CandidateGroups{}.hop;
  if (candidate.pp == 1) return;
  if (widest({{block, 1}, pp}, {dp}, cluster).nodes > 1) {
    groups.hop.nodes = 2;
    groups.hop.leaves = leaves_of_hops(pp, candidate.gpus, cluster);
  }
  set_crossings_of_hops(pp, {{block, 1}, dp}, cluster, groups.hop);
}

void set_shard_groups(const Candidate& candidate, const Coordinates& lie,
                      const PlanRequest& request, CandidateGroups& groups) {
  const auto& [tp, cp, dp, pp] = lie;
  const Steps shards{candidate.dp_shard, dp.step};
  const Steps copies{candidate.dp / candidate.dp_shard, dp.step * candidate.dp_shard};
  groups.shard = request.traits.shards.over_context
                     ? widest({cp, shards}, {tp, pp, copies}, request.cluster)
                     : widest({shards, {}}, {tp, cp, pp, copies}, request.cluster);
  groups.replicated = widest({copies, {}}, {tp, cp, pp, shards}, request.cluster);
}

}  // namespace

CandidateGroups groups_of(const Candidate& candidate, const PlanRequest& request) {
  return LatestGroups{}.of(candidate, request);
}

const CandidateGroups& LatestGroups::of(const Candidate& candidate, const PlanRequest& request) {
  const bool megatron = dealt_order(candidate, request.traits) == RankOrder::megatron;
  const bool dense = latest_ && megatron == megatron_ && candidate.tp == latest_->tp &&
                     candidate.cp == latest_->cp && candidate.dp == latest_->dp &&
                     candidate.pp == latest_->pp;
  const Coordinates lie = coordinates_of(candidate, megatron);
  if (!dense) set_dense_groups(candidate, lie, request.cluster, groups_);
  if (!dense || candidate.dp_shard != latest_->dp_shard) {
    set_shard_groups(candidate, lie, request, groups_);
  }
  if (!dense || candidate.ep != latest_->ep || candidate.etp != latest_->etp) {
    set_expert_groups(candidate, candidate.tp * candidate.cp, lie.dp, lie.pp, request.cluster,
                      groups_);
  }
  latest_ = candidate;
  megatron_ = megatron;
  return groups_;
}

GroupShape copy_group(const Candidate& candidate, int together, RankOrder order,
                      const ClusterSpec& cluster) {
  const int stage = together / candidate.pp, block = candidate.tp * candidate.cp;
  const int stages = candidate.pp, copies = std::max(1, candidate.gpus / together);
  if (stages == 1 || (order != RankOrder::megatron && stage >= block)) {
    return widest({{together, 1}, {}}, {{copies, together}}, cluster);
  }
  const int step = order == RankOrder::megatron ? block * candidate.dp : block;
  const Steps pp{stages, step};
  if (order == RankOrder::megatron) {
    return widest({{stage, 1}, pp}, {{step / stage, stage}}, cluster);
  }
  return widest({{stage, 1}, pp}, {{block / stage, stage}, {candidate.dp, block * stages}},
                cluster);
}

GroupNodes nodes_of(const CandidateGroups& own, const CandidateGroups& dealt) {
  const auto other = [](const GroupShape& group, const GroupShape& as_dealt) {
    const bool same = group.nodes == as_dealt.nodes && group.leaves == as_dealt.leaves;
    return same ? GroupSpan{} : GroupSpan{group.nodes, group.leaves};
  };
  return {.tp = other(own.tp, dealt.tp),
          .cp = other(own.cp, dealt.cp),
          .replicas = other(own.replicas, dealt.replicas),
          .shard = other(own.shard, dealt.shard),
          .replicated = other(own.replicated, dealt.replicated),
          .ep = other(own.ep, dealt.ep),
          .expert_replicas = other(own.expert_replicas, dealt.expert_replicas),
          .hop = other(own.hop, dealt.hop)};
}

}  // namespace tessera
