#include "cost_models/layout/rank_map.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

/// Splits `index` into digits, the first base fastest.
template <size_t N>
std::array<int, N> digits(int index, const std::array<int, N>& bases) {
  std::array<int, N> out{};
  for (size_t i = 0; i < N; ++i) {
    out[i] = index % bases[i];
    index /= bases[i];
  }
  return out;
}

RankCoord contiguous_coord(const ParallelLayout& layout, int index) {
  const auto [tp, cp, pp, shard, replicate] =
      digits<5>(index, {layout.tp, layout.cp, layout.pp, layout.dp_shard, layout.dp_replicate()});
  return {.tp = tp, .cp = cp, .pp = pp, .dp_replicate = replicate, .dp_shard = shard};
}

RankCoord megatron_coord(const ParallelLayout& layout, int index) {
  const auto [tp, cp, shard, replicate, pp] =
      digits<5>(index, {layout.tp, layout.cp, layout.dp_shard, layout.dp_replicate(), layout.pp});
  return {.tp = tp, .cp = cp, .pp = pp, .dp_replicate = replicate, .dp_shard = shard};
}

/// HybridFlow 5.3 (arXiv 2409.19256): the generation shard of a rank contains its training shard.
RankCoord strided_coord(const RankMap& training, const RankCoord& at,
                        const ParallelLayout& layout) {
  const int a = training.layout.tp / layout.tp, b = training.layout.pp / layout.pp;
  const int within = at.pp % b * a + at.tp % a;
  const int replica =
      (at.dp_replicate * training.layout.dp_shard + at.dp_shard) * training.layout.cp + at.cp;
  const int dp = replica * a * b + within;
  return {.tp = at.tp / a,
          .cp = 0,
          .pp = at.pp / b,
          .dp_replicate = dp / layout.dp_shard,
          .dp_shard = dp % layout.dp_shard};
}

bool same_ranks(std::span<const int> a, std::span<const int> b) {
  std::vector<int> left(a.begin(), a.end()), right(b.begin(), b.end());
  std::sort(left.begin(), left.end());
  std::sort(right.begin(), right.end());
  return left == right;
}

bool check_ranks(const ParallelLayout& layout, std::span<const int> ranks, const std::string& place,
                 Problems& problems) {
  const size_t before = problems.size();
  if (ranks.size() != static_cast<size_t>(layout.ranks())) {
    problems.push_back(
        {.place = place,
         .found = std::to_string(ranks.size()) + " ranks",
         .expected = std::to_string(layout.ranks()) + " ranks for " + describe(layout)});
  }
  std::vector<int> sorted(ranks.begin(), ranks.end());
  std::sort(sorted.begin(), sorted.end());
  if (!sorted.empty() && sorted.front() < 0) {
    problems.push_back({.place = place,
                        .found = "rank " + std::to_string(sorted.front()),
                        .expected = "ranks of at least 0"});
  }
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    problems.push_back({.place = place,
                        .found = "rank " + std::to_string(*twice) + " twice",
                        .expected = "every rank once"});
  }
  return problems.size() == before;
}

bool check_strided(const ParallelLayout& layout, std::span<const int> ranks,
                   const RankMap* training, const std::string& place, Problems& problems) {
  const size_t before = problems.size();
  const auto refuse = [&](std::string found, std::string expected) {
    problems.push_back(
        {.place = place, .found = std::move(found), .expected = std::move(expected)});
  };
  if (training == nullptr) {
    refuse("a strided rank map without a training role", "a role whose weights are received");
    return false;
  }
  const ParallelLayout& from = training->layout;
  if (from.tp % layout.tp != 0) {
    refuse("tp " + std::to_string(layout.tp),
           "a divisor of the training tp " + std::to_string(from.tp));
  }
  if (from.pp % layout.pp != 0) {
    refuse("pp " + std::to_string(layout.pp),
           "a divisor of the training pp " + std::to_string(from.pp));
  }
  if (layout.cp != 1) refuse("cp " + std::to_string(layout.cp), "cp 1 for a strided rank map");
  if (!same_ranks(ranks, training->ranks)) {
    refuse("other ranks than the training role's", "the same ranks for a strided rank map");
  }
  return problems.size() == before;
}

using CoordKey = std::array<int, 5>;

/// The coordinates that the members of a group share (first), and their order inside it (second).
std::pair<CoordKey, CoordKey> expert_group_key(const ParallelLayout& layout, const RankCoord& c,
                                               Axis axis) {
  const ExpertCoord e = expert_coord(layout, c);
  const int along = axis == Axis::ep ? e.ep : axis == Axis::etp ? e.etp : e.edp;
  return {{c.pp, axis == Axis::etp ? -1 : e.etp, axis == Axis::ep ? -1 : e.ep,
           axis == Axis::edp ? -1 : e.edp},
          {along}};
}

std::pair<CoordKey, CoordKey> group_key(const ParallelLayout& layout, const RankCoord& c,
                                        Axis axis) {
  CoordKey shared{c.tp, c.cp, c.pp, c.dp_replicate, c.dp_shard};
  CoordKey order{};
  const auto moves = [&](std::initializer_list<size_t> slowest_first) {
    size_t next = 0;
    for (const size_t i : slowest_first) {
      order[next++] = shared[i];
      shared[i] = -1;
    }
  };
  switch (axis) {
    case Axis::tp:
      moves({0});
      break;
    case Axis::cp:
      moves({1});
      break;
    case Axis::pp:
      moves({2});
      break;
    case Axis::dp:
      moves({3, 4});
      break;
    case Axis::dp_replicate:
      moves({3});
      break;
    case Axis::dp_shard:
      moves({4});
      break;
    case Axis::model:
      moves({2, 1, 0});
      break;
    case Axis::ep:
    case Axis::etp:
    case Axis::edp:
      return expert_group_key(layout, c, axis);
  }
  return {shared, order};
}

template <class Key>
std::vector<std::vector<int>> collect(const std::map<Key, std::map<CoordKey, int>>& members) {
  std::vector<std::vector<int>> groups;
  for (const auto& [key, ordered] : members) {
    std::vector<int>& group = groups.emplace_back();
    for (const auto& [order, rank] : ordered) group.push_back(rank);
  }
  std::sort(groups.begin(), groups.end());
  return groups;
}

}  // namespace

ExpertCoord expert_coord(const ParallelLayout& layout, const RankCoord& coord) {
  const int dp = coord.dp_replicate * layout.dp_shard + coord.dp_shard;
  const auto [etp, ep, edp] = digits<3>(coord.tp + layout.tp * (coord.cp + layout.cp * dp),
                                        {layout.etp, layout.ep, layout.edp()});
  return {.etp = etp, .ep = ep, .edp = edp};
}

int RankMap::index_of(int rank) const {
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
}

int RankMap::rank_at(const RankCoord& coord) const {
  const auto found = std::find(coords.begin(), coords.end(), coord);
  TESSERA_CHECK(found != coords.end());
  return ranks[static_cast<size_t>(found - coords.begin())];
}

RankMap make_rank_map(RankOrder order, const ParallelLayout& layout, std::span<const int> ranks,
                      const RankMap* training, const std::string& place, Problems& problems) {
  RankMap map{.layout = layout, .ranks = {ranks.begin(), ranks.end()}};
  if (!check_ranks(layout, ranks, place, problems)) return map;
  if (order == RankOrder::strided && !check_strided(layout, ranks, training, place, problems)) {
    return map;
  }
  for (int i = 0; i < layout.ranks(); ++i) {
    switch (order) {
      case RankOrder::contiguous:
      case RankOrder::list:
        map.coords.push_back(contiguous_coord(layout, i));
        break;
      case RankOrder::megatron:
        map.coords.push_back(megatron_coord(layout, i));
        break;
      case RankOrder::strided: {
        const auto at = static_cast<size_t>(training->index_of(map.ranks[static_cast<size_t>(i)]));
        map.coords.push_back(strided_coord(*training, training->coords[at], layout));
      }
    }
  }
  return map;
}

std::vector<std::vector<int>> groups_along(const RankMap& map, Axis axis) {
  std::map<CoordKey, std::map<CoordKey, int>> members;
  for (size_t i = 0; i < map.coords.size(); ++i) {
    const auto [shared, order] = group_key(map.layout, map.coords[i], axis);
    members[shared][order] = map.ranks[i];
  }
  return collect(members);
}

std::vector<int> group_of(const RankMap& map, Axis axis, int rank) {
  const int index = map.index_of(rank);
  TESSERA_CHECK(index >= 0);
  const CoordKey wanted = group_key(map.layout, map.coords[static_cast<size_t>(index)], axis).first;
  std::map<CoordKey, int> ordered;
  for (size_t i = 0; i < map.coords.size(); ++i) {
    const auto [shared, order] = group_key(map.layout, map.coords[i], axis);
    if (shared == wanted) ordered[order] = map.ranks[i];
  }
  std::vector<int> group;
  for (const auto& [order, member] : ordered) group.push_back(member);
  return group;
}

std::vector<std::vector<int>> micro_dp_groups(const RankMap& training, const RankMap& generation) {
  // A training replica is what dp_replicate and cp repeat; FSDP shards are parts of one replica.
  using Key = std::array<int, 4>;
  std::map<Key, std::map<CoordKey, int>> members;
  for (size_t i = 0; i < generation.ranks.size(); ++i) {
    const int at = training.index_of(generation.ranks[i]);
    if (at < 0) continue;
    const RankCoord& train = training.coords[static_cast<size_t>(at)];
    const RankCoord& gen = generation.coords[i];
    members[Key{gen.tp, gen.pp, train.dp_replicate, train.cp}]
           [CoordKey{gen.dp_replicate, gen.dp_shard, gen.cp}] = generation.ranks[i];
  }
  return collect(members);
}

}  // namespace tessera
