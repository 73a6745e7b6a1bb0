#include "cost_models/layout/rank_assignment.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"
#include "cost_models/layout/min_cost_flow.h"
#include "cost_models/layout/place_overlaps.h"

namespace tessera {
namespace {

MovedElements moved(PlaceOverlaps& overlaps, const RankMap& to) {
  MovedElements sum;
  for (std::size_t i = 0; i < to.ranks.size(); ++i) {
    const int rank = to.ranks[i], place = overlaps.place(i);
    const std::int64_t across = overlaps.absent(place, overlaps.sources_on(overlaps.node(rank)));
    const std::int64_t received = overlaps.received(place, overlaps.source(rank));
    sum.across_nodes += across;
    sum.received += received;
    sum.busiest_across_nodes = std::max(sum.busiest_across_nodes, across);
    sum.busiest_received = std::max(sum.busiest_received, received);
  }
  return sum;
}

bool moves_less(const MovedElements& a, const MovedElements& b) {
  if (a.busiest_across_nodes > b.busiest_across_nodes) return false;
  if (a.busiest_received > b.busiest_received) return false;
  const auto key = [](const MovedElements& m) {
    return std::tuple(m.across_nodes, m.received, m.busiest_across_nodes, m.busiest_received);
  };
  return key(a) < key(b);
}

/// Consecutive places of one TP or expert group.
int group_places(const ParallelLayout& layout) {
  return std::max(layout.tp, layout.ep * layout.etp);
}

/// Nodes with alike ranks.
struct NodeKind {
  std::vector<int> held;     // class of each rank's part, in the order of its ranks
  std::vector<int> sources;  // of all ranks there
  bool operator<(const NodeKind& other) const {
    return std::tie(held, sources) < std::tie(other.held, other.sources);
  }
};

class Assignment {
 public:
  /// Places within a node that would receive more than `most` elements are avoided.
  Assignment(PlaceOverlaps& overlaps, const ParallelLayout& layout, std::span<const int> ranks,
             std::int64_t most)
      : overlaps_(overlaps), layout_(layout), most_(most) {
    for (const int rank : ranks) ranks_of_node_[overlaps.node(rank)].push_back(rank);
    std::vector<int> slots;
    for (const auto& [node, members] : ranks_of_node_) {
      slots.push_back(static_cast<int>(members.size()));
    }
    block_ = places_together(layout, slots);
    // Blocks a period apart hold the same.
    const int period = std::max(layout.tp * layout.pp, layout.ep * layout.etp);
    types_ = block_ > 0 ? period / block_ : 0;
  }

  /// Empty where the groups do not fill the nodes evenly.
  std::vector<int> run() {
    if (block_ == 0) return {};
    choose_nodes();
    std::vector<int> next_of_type(static_cast<std::size_t>(types_), 0);
    std::vector<int> out(static_cast<std::size_t>(layout_.ranks()), -1);
    for (const auto& [node, members] : ranks_of_node_) {
      const std::vector<int> types = take_blocks(kind_of_node_.at(node), members.size());
      std::vector<std::size_t> places;  // indices of the node's places
      for (const int type : types) {
        const int block = type + types_ * next_of_type[static_cast<std::size_t>(type)]++;
        for (int i = 0; i < block_; ++i) {
          places.push_back(static_cast<std::size_t>(block * block_ + i));
        }
      }
      const std::vector<int> takes = within(types, places, members);
      for (std::size_t i = 0; i < places.size(); ++i) {
        out[places[i]] = members[static_cast<std::size_t>(takes[i])];
      }
    }
    return out;
  }

 private:
  /// Elements that a block receives from other nodes, and at least from ranks of its node.
  std::pair<std::int64_t, std::int64_t> block_cost(int type, const NodeKind& kind) {
    std::pair<std::int64_t, std::int64_t> cost{0, 0};
    for (int i = 0; i < block_; ++i) {
      const int index = type * block_ + i;
      const int place = overlaps_.place(static_cast<std::size_t>(index));
      cost.first += overlaps_.absent(place, kind.sources);
      std::int64_t least = std::numeric_limits<std::int64_t>::max();
      for (const int held : kind.held) least = std::min(least, overlaps_.received(place, held));
      cost.second += least;
    }
    return cost;
  }

  /// How many blocks of each type every kind of node takes.
  void choose_nodes() {
    std::map<NodeKind, int> ids;
    std::vector<const NodeKind*> kinds;
    std::vector<int> room;  // for blocks
    for (const auto& [node, members] : ranks_of_node_) {
      NodeKind kind{.held = {}, .sources = overlaps_.sources_on(node)};
      for (const int rank : members) kind.held.push_back(overlaps_.source(rank));
      const auto [found, fresh] = ids.try_emplace(std::move(kind), static_cast<int>(ids.size()));
      if (fresh) {
        kinds.push_back(&found->first);
        room.push_back(0);
      }
      kind_of_node_[node] = found->second;
      room[static_cast<std::size_t>(found->second)] += static_cast<int>(members.size()) / block_;
    }
    const std::vector<int> blocks(static_cast<std::size_t>(types_),
                                  layout_.ranks() / (block_ * types_));
    std::vector<std::vector<std::int64_t>> cost(static_cast<std::size_t>(types_));
    if (types_ > 1) fill_costs(kinds, cost);
    if (types_ == 1) cost[0].assign(kinds.size(), 0);
    left_ = min_cost_assignment(blocks, room, cost);
  }

  /// Bytes across nodes decide, bytes within break ties as far as 64 bits allow.
  void fill_costs(const std::vector<const NodeKind*>& kinds,
                  std::vector<std::vector<std::int64_t>>& cost) {
    std::int64_t unit = 0, most_across = 0, most_within = 0;
    std::vector<std::vector<std::int64_t>> within(cost.size());
    for (std::size_t type = 0; type < cost.size(); ++type) {
      for (const NodeKind* const kind : kinds) {
        const auto [across, inside] = block_cost(static_cast<int>(type), *kind);
        cost[type].push_back(across);
        within[type].push_back(inside);
        unit = std::gcd(unit, across);
        most_across = std::max(most_across, across);
        most_within = std::max(most_within, inside);
      }
    }
    unit = std::max<std::int64_t>(unit, 1);
    const std::int64_t blocks = layout_.ranks() / block_;
    const std::int64_t most_units = most_across / unit;  // whole: every cost is a multiple
    const double room = 4e18 / static_cast<double>(blocks) / (static_cast<double>(most_units) + 1) /
                        static_cast<double>(blocks);
    const double steps = std::min(room, static_cast<double>(most_within));
    const std::int64_t weight = steps < 1 ? 1 : static_cast<std::int64_t>(steps) * blocks + 1;
    for (std::size_t type = 0; type < cost.size(); ++type) {
      for (std::size_t k = 0; k < kinds.size(); ++k) {
        const double tie = steps < 1 ? 0
                                     : static_cast<double>(within[type][k]) /
                                           static_cast<double>(most_within) * std::floor(steps);
        cost[type][k] = cost[type][k] / unit * weight + static_cast<std::int64_t>(tie);
      }
    }
  }

  /// The types that one node of the kind takes of those that its kind still has, evenly.
  std::vector<int> take_blocks(int kind, std::size_t slots) {
    std::vector<int> types;
    for (std::size_t i = 0; i < slots / static_cast<std::size_t>(block_); ++i) {
      std::size_t best = 0;
      for (std::size_t type = 1; type < left_.size(); ++type) {
        const auto k = static_cast<std::size_t>(kind);
        if (left_[type][k] > left_[best][k]) best = type;
      }
      --left_[best][static_cast<std::size_t>(kind)];
      types.push_back(static_cast<int>(best));
    }
    std::sort(types.begin(), types.end());
    return types;
  }

  /// By place of the node: the member that takes it.
  const std::vector<int>& within(const std::vector<int>& types,
                                 const std::vector<std::size_t>& indices,
                                 const std::vector<int>& members) {
    std::vector<int> held;
    for (const int rank : members) held.push_back(overlaps_.source(rank));
    const auto [found, fresh] = known_.try_emplace({types, held});
    std::vector<int>& takes = found->second;
    if (!fresh) return takes;
    std::map<int, std::vector<int>> alike_places, alike_members;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      alike_places[overlaps_.place(indices[i])].push_back(static_cast<int>(i));
      alike_members[held[i]].push_back(static_cast<int>(i));
    }
    std::vector<int> supply, demand;
    std::vector<std::vector<std::int64_t>> cost;
    for (const auto& [place, them] : alike_places) {
      supply.push_back(static_cast<int>(them.size()));
      cost.emplace_back();
      for (const auto& [source, others] : alike_members) {
        cost.back().push_back(overlaps_.received(place, source));
      }
    }
    for (const auto& [source, them] : alike_members)
      demand.push_back(static_cast<int>(them.size()));
    const auto flow = min_cost_assignment(supply, demand, cost, most_);
    takes.resize(indices.size());
    std::vector<std::size_t> used(alike_members.size(), 0);
    std::size_t row = 0;
    for (const auto& [place, them] : alike_places) {
      std::size_t next = 0, column = 0;
      for (const auto& [source, others] : alike_members) {
        for (int n = 0; n < flow[row][column]; ++n) {
          takes[static_cast<std::size_t>(them[next++])] = others[used[column]++];
        }
        ++column;
      }
      ++row;
    }
    return takes;
  }

  PlaceOverlaps& overlaps_;
  const ParallelLayout& layout_;
  std::int64_t most_ = 0;
  std::map<int, std::vector<int>> ranks_of_node_;
  std::map<int, int> kind_of_node_;
  int block_ = 0, types_ = 0;
  std::vector<std::vector<int>> left_;  // [type][kind of node]: blocks not handed out yet
  std::map<std::pair<std::vector<int>, std::vector<int>>, std::vector<int>> known_;
};

RankMap listed(const ParallelLayout& layout, std::span<const int> ranks) {
  Problems problems;
  RankMap map = make_rank_map(RankOrder::list, layout, ranks, nullptr, "rank_map", problems);
  TESSERA_CHECK(problems.empty());
  return map;
}

}  // namespace

MovedElements moved_elements(const ParameterTable& table, const RankMap& from, const RankMap& to,
                             const ReshardOptions& options) {
  PlaceOverlaps overlaps(table, from, to, options);
  TESSERA_CHECK(!overlaps.too_many());
  return moved(overlaps, to);
}

int places_together(const ParallelLayout& layout, std::span<const int> slots) {
  if (layout.cp != 1 || (layout.pp > 1 && layout.ep * layout.etp > layout.tp)) return 0;
  const int group = group_places(layout);
  const auto each = [&](auto fits) { return std::all_of(slots.begin(), slots.end(), fits); };
  if (group % layout.tp != 0) return 0;
  if (!each([&](int n) { return n % group == 0; })) {
    const int node = slots.front();
    const bool fills = group % node == 0 && each([&](int n) { return n == node; });
    return fills ? node : 0;
  }
  int stages = layout.pp;
  while (layout.pp % stages != 0 || !each([&](int n) { return n % (group * stages) == 0; })) {
    --stages;
  }
  return group * stages;
}

std::vector<int> assign_ranks(const ParameterTable& table, const RankMap& from,
                              const ParallelLayout& to, std::span<const int> ranks,
                              const ReshardOptions& options) {
  const RankMap contiguous = listed(to, ranks);
  PlaceOverlaps overlaps(table, from, contiguous, options);
  if (overlaps.too_many()) return contiguous.ranks;
  const MovedElements before = moved(overlaps, contiguous);
  std::vector<int> found = Assignment(overlaps, to, ranks, before.busiest_received).run();
  if (found.empty()) return contiguous.ranks;
  const bool better = moves_less(moved(overlaps, listed(to, found)), before);
  return better ? found : contiguous.ranks;
}

}  // namespace tessera
