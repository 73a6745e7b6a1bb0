#include "cost_models/layout/reshard_plan.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "cost_models/layout/sender_balance.h"
#include "cost_models/layout/sharding.h"
#include "cost_models/spec/problem.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera {
namespace {

/// A part of a destination's box that one set of ranks can send, or that stays (`holders` = -1).
struct Cell {
  int destination = 0;
  Box box;
  int holders = -1;  // index into HolderSets
};

/// Sets of ranks, each once.
class HolderSets {
 public:
  int id_of(std::vector<int> ranks) {
    const auto [entry, is_new] = ids_.try_emplace(ranks, static_cast<int>(sets_.size()));
    if (is_new) sets_.push_back(std::move(ranks));
    return entry->second;
  }
  const std::vector<int>& ranks(int id) const { return sets_[static_cast<size_t>(id)]; }

 private:
  std::map<std::vector<int>, int> ids_;
  std::vector<std::vector<int>> sets_;
};

/// One box of a tensor and the ranks that hold it.
struct HeldBox {
  Box box;
  std::vector<int> ranks;
};

bool contains(const Box& outer, const Box& inner) { return intersect(outer, inner) == inner; }

std::vector<HeldBox> distinct_boxes(const std::vector<Holding>& holdings) {
  std::vector<HeldBox> boxes;
  for (const Holding& holding : holdings) {
    if (volume(holding.box) == 0) continue;
    const auto known = std::find_if(boxes.begin(), boxes.end(),
                                    [&](const HeldBox& held) { return held.box == holding.box; });
    if (known == boxes.end()) {
      boxes.push_back({holding.box, {holding.rank}});
    } else {
      known->ranks.push_back(holding.rank);
    }
  }
  return boxes;
}

/// `box` cut along the borders of `cut`: the common part first, then the rest.
std::vector<Box> cut_by(const Box& box, const Box& cut) {
  const Box common = intersect(box, cut);
  if (volume(common) == 0) return {box};
  std::vector<Box> parts = subtract(box, common);
  parts.insert(parts.begin(), common);
  return parts;
}

/// The cells of one tensor; equal for all tensors with equal holdings.
class TensorCells {
 public:
  TensorCells(const ShardedTensor& tensor, HolderSets& sets)
      : tensor_(tensor), sets_(sets), sources_(distinct_boxes(tensor.source)) {
    for (const Holding& holding : tensor.source) own_[holding.rank].push_back(holding.box);
  }

  std::vector<Cell> all() {
    std::vector<Cell> cells;
    for (const Holding& wanted : tensor_.destination) add(wanted, cells);
    return cells;
  }

 private:
  void add(const Holding& wanted, std::vector<Cell>& cells) {
    std::vector<Box> missing{wanted.box};
    const auto own = own_.find(wanted.rank);
    if (own != own_.end()) {
      for (const Box& held : own->second) {
        std::vector<Box> rest;
        for (const Box& box : missing) {
          const Box common = intersect(box, held);
          if (volume(common) > 0) cells.push_back({wanted.rank, common, -1});
          const std::vector<Box> left = subtract(box, held);
          rest.insert(rest.end(), left.begin(), left.end());
        }
        missing = std::move(rest);
      }
    }
    for (const Box& box : missing) {
      if (volume(box) > 0) fetch(wanted.rank, box, cells);
    }
  }

  /// Equal boxes are missing on many ranks: their cells are worked out once.
  void fetch(int rank, const Box& missing, std::vector<Cell>& cells) {
    auto known = std::find_if(fetched_.begin(), fetched_.end(),
                              [&](const auto& entry) { return entry.first == missing; });
    if (known == fetched_.end()) {
      fetched_.emplace_back(missing, cells_of(missing));
      known = std::prev(fetched_.end());
    }
    for (const auto& [box, holders] : known->second) cells.push_back({rank, box, holders});
  }

  std::vector<std::pair<Box, int>> cells_of(const Box& missing) {
    std::vector<Box> parts{missing};
    for (const HeldBox& source : sources_) {
      std::vector<Box> finer;
      for (const Box& part : parts) {
        const std::vector<Box> cut = cut_by(part, source.box);
        finer.insert(finer.end(), cut.begin(), cut.end());
      }
      parts = std::move(finer);
    }
    std::vector<std::pair<Box, int>> cells;
    for (const Box& part : parts) cells.emplace_back(part, sets_.id_of(holders_of(part)));
    return cells;
  }

  std::vector<int> holders_of(const Box& part) const {
    std::vector<int> ranks;
    for (const HeldBox& source : sources_) {
      if (contains(source.box, part)) {
        ranks.insert(ranks.end(), source.ranks.begin(), source.ranks.end());
      }
    }
    if (ranks.empty()) {
      throw Error(ExitCode::internal, "reshard: no rank holds a part of " + tensor_.name);
    }
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
  }

  const ShardedTensor& tensor_;
  HolderSets& sets_;
  std::vector<HeldBox> sources_;
  std::unordered_map<int, std::vector<Box>> own_;
  std::vector<std::pair<Box, std::vector<std::pair<Box, int>>>> fetched_;
};

std::uint64_t hash_of(const std::vector<Holding>& holdings, std::uint64_t seed) {
  std::vector<std::int64_t> words;
  words.reserve(holdings.size() * 5);
  for (const Holding& holding : holdings) {
    words.push_back(holding.rank);
    for (int dim = 0; dim < holding.box.rank; ++dim) {
      words.push_back(holding.box.dims[dim].lo);
      words.push_back(holding.box.dims[dim].hi);
    }
  }
  return XXH3_64bits_withSeed(words.data(), words.size() * sizeof(std::int64_t), seed);
}

/// The cells of every tensor, worked out once for tensors with equal holdings.
struct AllCells {
  std::vector<std::vector<Cell>> patterns;
  std::vector<int> pattern_of;  // by tensor
};

AllCells find_cells(std::span<const ShardedTensor> tensors, HolderSets& sets) {
  AllCells cells;
  std::unordered_multimap<std::uint64_t, int> first_with;  // hash -> tensor
  for (size_t i = 0; i < tensors.size(); ++i) {
    const ShardedTensor& tensor = tensors[i];
    const std::uint64_t hash = hash_of(tensor.destination, hash_of(tensor.source, 0));
    const auto [begin, end] = first_with.equal_range(hash);
    const auto same = std::find_if(begin, end, [&](const auto& entry) {
      const ShardedTensor& other = tensors[static_cast<size_t>(entry.second)];
      return other.source == tensor.source && other.destination == tensor.destination;
    });
    if (same != end) {
      cells.pattern_of.push_back(cells.pattern_of[static_cast<size_t>(same->second)]);
      continue;
    }
    first_with.emplace(hash, static_cast<int>(i));
    cells.pattern_of.push_back(static_cast<int>(cells.patterns.size()));
    cells.patterns.push_back(TensorCells(tensor, sets).all());
  }
  return cells;
}

/// Chooses the sender of every cell: demands with equal holders (and, where nodes matter, on equal
/// nodes) are one class whose bytes are cut into the balanced shares one after another.
class Senders {
 public:
  Senders(const HolderSets& sets, const ReshardOptions& options) : sets_(sets), options_(options) {}

  void demand(const Cell& cell, std::int64_t bytes) {
    const Key key = key_of(cell);
    const auto [entry, is_new] = index_.try_emplace(key, static_cast<int>(classes_.size()));
    if (is_new) classes_.push_back({key, 0});
    classes_[static_cast<size_t>(entry->second)].bytes += bytes;
  }

  /// Returns the fractional optimum of the busiest sender.
  std::int64_t balance() {
    std::vector<int> ranks;
    for (const Class& each : classes_) {
      const std::vector<int>& holders = sets_.ranks(each.key.first);
      ranks.insert(ranks.end(), holders.begin(), holders.end());
    }
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    std::vector<DemandClass> demands;
    for (const Class& each : classes_) demands.push_back(demand_of(each, ranks));
    SenderBalance balanced = balance_senders(demands, static_cast<int>(ranks.size()));
    for (size_t i = 0; i < classes_.size(); ++i) {
      for (SenderShare& share : balanced.shares[i]) {
        share.holder = ranks[static_cast<size_t>(share.holder)];
      }
      classes_[i].shares = std::move(balanced.shares[i]);
    }
    return balanced.min_max;
  }

  /// The sender of the next cell of its class. A cell on the border of two shares belongs to the
  /// later one.
  int next(const Cell& cell, std::int64_t bytes) {
    Class& from = classes_[static_cast<size_t>(index_.at(key_of(cell)))];
    from.position += bytes;
    while (from.share + 1 < from.shares.size() &&
           from.position > from.share_begin + from.shares[from.share].bytes) {
      from.share_begin += from.shares[from.share].bytes;
      ++from.share;
    }
    return from.shares[from.share].holder;
  }

 private:
  using Key = std::pair<int, int>;  // holder set, node of the destination (or 0)
  struct Class {
    Key key;
    std::int64_t bytes = 0;
    std::vector<SenderShare> shares;
    size_t share = 0;
    std::int64_t share_begin = 0, position = 0;
  };

  Key key_of(const Cell& cell) const {
    return {cell.holders, options_.node_of ? options_.node_of(cell.destination) : 0};
  }

  DemandClass demand_of(const Class& from, const std::vector<int>& ranks) const {
    DemandClass demand{.bytes = from.bytes};
    for (const int rank : sets_.ranks(from.key.first)) {
      const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank);
      demand.holders.push_back(static_cast<int>(at - ranks.begin()));
      if (options_.node_of) demand.near.push_back(options_.node_of(rank) == from.key.second);
    }
    return demand;
  }

  const HolderSets& sets_;
  const ReshardOptions& options_;
  std::map<Key, int> index_;
  std::vector<Class> classes_;
};

std::uint64_t digest_of(const std::vector<Transfer>& transfers) {
  std::vector<std::int64_t> words;
  words.reserve(transfers.size() * 7);
  for (const Transfer& transfer : transfers) {
    words.insert(words.end(), {transfer.tensor, transfer.source, transfer.destination});
    for (int dim = 0; dim < transfer.box.rank; ++dim) {
      words.push_back(transfer.box.dims[dim].lo);
      words.push_back(transfer.box.dims[dim].hi);
    }
  }
  return XXH3_64bits(words.data(), words.size() * sizeof(std::int64_t));
}

int rank_count(std::span<const ShardedTensor> tensors) {
  int highest = -1;
  for (const ShardedTensor& tensor : tensors) {
    for (const Holding& holding : tensor.source) highest = std::max(highest, holding.rank);
    for (const Holding& holding : tensor.destination) highest = std::max(highest, holding.rank);
  }
  return highest + 1;
}

/// Orders transfers as ReshardPlan states, one destination at a time.
void sort_by_destination(std::vector<std::vector<Transfer>>& by_destination) {
  const auto before = [](const Transfer& a, const Transfer& b) {
    const auto first = [](const Transfer& t, int dim) { return t.box.dims[dim].lo; };
    return std::make_tuple(a.source, a.tensor, first(a, 0), first(a, 1), first(a, 2), first(a, 3)) <
           std::make_tuple(b.source, b.tensor, first(b, 0), first(b, 1), first(b, 2), first(b, 3));
  };
  for (std::vector<Transfer>& transfers : by_destination) {
    std::sort(transfers.begin(), transfers.end(), before);
  }
}

void add_totals(ReshardPlan& plan) {
  for (const RankTraffic& rank : plan.traffic) {
    plan.bytes_received.value = std::max(plan.bytes_received.value, rank.received);
    plan.bytes_sent.value = std::max(plan.bytes_sent.value, rank.sent);
    plan.total_received.value += rank.received;
  }
}

/// |destination(g)| - |destination(g) intersect source(g)| of the busiest g, straight from the
/// holdings and so independent of the transfers.
std::int64_t lower_bound_of(std::span<const ShardedTensor> tensors, int ranks) {
  std::vector<std::int64_t> needed(static_cast<size_t>(ranks), 0);
  for (const ShardedTensor& tensor : tensors) {
    std::unordered_map<int, std::vector<Box>> own;
    for (const Holding& holding : tensor.source) own[holding.rank].push_back(holding.box);
    for (const Holding& wanted : tensor.destination) {
      std::int64_t elements = volume(wanted.box);
      const auto held = own.find(wanted.rank);
      if (held != own.end()) {
        for (const Box& box : held->second) elements -= volume(intersect(wanted.box, box));
      }
      needed[static_cast<size_t>(wanted.rank)] += elements * tensor.element_bytes;
    }
  }
  return needed.empty() ? 0 : *std::max_element(needed.begin(), needed.end());
}

}  // namespace

ReshardPlan plan_reshard(std::span<const ShardedTensor> tensors, const ReshardOptions& options) {
  HolderSets sets;
  const AllCells cells = find_cells(tensors, sets);
  const auto cells_of = [&](size_t tensor) -> const std::vector<Cell>& {
    return cells.patterns[static_cast<size_t>(cells.pattern_of[tensor])];
  };
  const int ranks = rank_count(tensors);
  Senders senders(sets, options);
  for (size_t i = 0; i < tensors.size(); ++i) {
    for (const Cell& cell : cells_of(i)) {
      if (cell.holders >= 0) senders.demand(cell, volume(cell.box) * tensors[i].element_bytes);
    }
  }
  ReshardPlan plan;
  plan.min_max_sent.value = senders.balance();
  plan.traffic.resize(static_cast<size_t>(ranks));
  std::vector<std::vector<Transfer>> by_destination(static_cast<size_t>(ranks));
  for (size_t i = 0; i < tensors.size(); ++i) {
    for (const Cell& cell : cells_of(i)) {
      const std::int64_t bytes = volume(cell.box) * tensors[i].element_bytes;
      const auto to = static_cast<size_t>(cell.destination);
      const int from = cell.holders < 0 ? cell.destination : senders.next(cell, bytes);
      by_destination[to].push_back({static_cast<int>(i), from, cell.destination, cell.box});
      if (cell.holders < 0) {
        plan.traffic[to].kept += bytes;
      } else {
        plan.traffic[to].received += bytes;
        plan.traffic[static_cast<size_t>(from)].sent += bytes;
      }
    }
  }
  sort_by_destination(by_destination);
  for (const std::vector<Transfer>& transfers : by_destination) {
    plan.transfers.insert(plan.transfers.end(), transfers.begin(), transfers.end());
  }
  add_totals(plan);
  plan.lower_bound.value = lower_bound_of(tensors, ranks);
  plan.digest = digest_of(plan.transfers);
  return plan;
}

std::vector<ShardedTensor> model_tensors(const ParameterTable& table, const RankMap& from,
                                         const RankMap& to, DType dtype) {
  std::vector<ShardedTensor> tensors;
  tensors.reserve(table.rows.size());
  for (const Parameter& parameter : table.rows) {
    ShardedTensor tensor{parameter.name, parameter.shape, size_of(dtype), {}, {}};
    for (size_t i = 0; i < from.ranks.size(); ++i) {
      if (const auto box = stored_box(parameter, from.layout, from.coords[i])) {
        tensor.source.push_back({from.ranks[i], *box});
      }
    }
    for (size_t i = 0; i < to.ranks.size(); ++i) {
      if (const auto box = compute_box(parameter, to.layout, to.coords[i])) {
        tensor.destination.push_back({to.ranks[i], *box});
      }
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::vector<ShardedTensor> full_gather_tensors(const ParameterTable& table, const RankMap& from,
                                               const RankMap& to, DType dtype) {
  std::vector<ShardedTensor> tensors = model_tensors(table, from, to, dtype);
  for (ShardedTensor& tensor : tensors) {
    tensor.destination.clear();
    for (const int rank : to.ranks) tensor.destination.push_back({rank, whole(tensor.shape)});
  }
  return tensors;
}

}  // namespace tessera
