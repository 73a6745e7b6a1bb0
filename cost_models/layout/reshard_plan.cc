#include "cost_models/layout/reshard_plan.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>

#include "cost_models/layout/overlay.h"
#include "cost_models/layout/sender_balance.h"
#include "cost_models/layout/sharding.h"
#include "cost_models/spec/problem.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera {
namespace {

constexpr std::array<std::string_view, 6> kTransports{"automatic",  "copy_engine", "window",
                                                      "all_gather", "send_recv",   "host"};

constexpr int kKept = -1;
constexpr int kElsewhere = -1;  // a node without holders

bool box_less(const Box& a, const Box& b) {
  for (int d = 0; d < a.rank; ++d) {
    const auto& x = a.dims[static_cast<size_t>(d)];
    const auto& y = b.dims[static_cast<size_t>(d)];
    if (x.lo != y.lo) return x.lo < y.lo;
    if (x.hi != y.hi) return x.hi < y.hi;
  }
  return false;
}

/// Hands out the bytes of one class to its holders, in the order of the shares.
struct Dispenser {
  const std::vector<SenderShare>* shares = nullptr;
  size_t next = 0;
  std::int64_t position = 0, boundary = 0;

  void begin(const std::vector<SenderShare>& list) {
    shares = &list;
    boundary = list.empty() ? 0 : list.front().bytes;
  }
  bool last() const { return next + 1 >= shares->size(); }
  int holder() const { return (*shares)[next].holder; }
  void advance() { boundary += (*shares)[++next].bytes; }
};

/// xxh3 of transfers, in 64-bit words.
class Digest {
 public:
  Digest() : state_(XXH3_createState(), &XXH3_freeState) { XXH3_64bits_reset(state_.get()); }

  void add(const Transfer& transfer) {
    words_.insert(words_.end(), {transfer.tensor, transfer.source, transfer.destination});
    for (int d = 0; d < transfer.box.rank; ++d) {
      const Interval& side = transfer.box.dims[static_cast<size_t>(d)];
      words_.insert(words_.end(), {side.lo, side.hi});
    }
    if (words_.size() > 4096) hash();
  }
  std::uint64_t value() {
    hash();
    return XXH3_64bits_digest(state_.get());
  }

 private:
  void hash() {
    XXH3_64bits_update(state_.get(), words_.data(), words_.size() * sizeof(std::int64_t));
    words_.clear();
  }

  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state_;
  std::vector<std::int64_t> words_;
};

/// Tensors that lie alike share one overlay; demands with the same holders and the same node of the
/// destination share one class. Both make a model of thousands of tensors a small problem.
class Planner {
 public:
  /// `kind_of[t]` is the index in `tensors` of what lies as tensor t does; `listed`: with the
  /// transfers, not only their digest.
  Planner(std::span<const ShardedTensor> tensors, std::vector<int> kind_of, bool listed,
          const ReshardOptions& options)
      : tensors_(tensors), kind_of_(std::move(kind_of)), listed_(listed), options_(options) {
    int top = -1;
    for (const ShardedTensor& tensor : tensors) {
      for (const Holding& holding : tensor.source) top = std::max(top, holding.rank);
      for (const Holding& holding : tensor.destination) top = std::max(top, holding.rank);
    }
    plan_.traffic.resize(static_cast<size_t>(top + 1));
  }

  ReshardPlan plan() {
    find_patterns();
    for (Pattern& pattern : patterns_) classify(pattern);
    SenderBalance balance = balance_senders(classes_, static_cast<int>(plan_.traffic.size()));
    dispensers_.resize(classes_.size());
    for (size_t c = 0; c < classes_.size(); ++c) dispensers_[c].begin(balance.shares[c]);
    emit();
    summarise(balance);
    return std::move(plan_);
  }

 private:
  struct Pattern {
    int first = 0;  // the tensor that stands for all of them
    std::int64_t tensors = 0;
    Overlay overlay;
    std::vector<int> of_cell;  // by (destination entry, cell): class or kKept
  };

  void find_patterns() {
    std::map<std::uint64_t, std::vector<int>> by_hash;
    std::vector<int> pattern_of_kind;
    pattern_of_kind.reserve(tensors_.size());
    for (size_t t = 0; t < tensors_.size(); ++t) {
      std::vector<int>& same = by_hash[overlay_hash(tensors_[t])];
      const auto found = std::find_if(same.begin(), same.end(), [&](int p) {
        return lies_alike(tensors_[static_cast<size_t>(patterns_[static_cast<size_t>(p)].first)],
                          tensors_[t]);
      });
      if (found != same.end()) {
        pattern_of_kind.push_back(*found);
      } else {
        same.push_back(static_cast<int>(patterns_.size()));
        pattern_of_kind.push_back(same.back());
        patterns_.push_back({.first = static_cast<int>(t), .overlay = overlay_of(tensors_[t])});
      }
    }
    for (const int kind : kind_of_) {
      pattern_of_.push_back(pattern_of_kind[static_cast<size_t>(kind)]);
      ++patterns_[static_cast<size_t>(pattern_of_.back())].tensors;
    }
  }

  void classify(Pattern& pattern) {
    const std::int64_t element = tensors_[static_cast<size_t>(pattern.first)].element_bytes;
    std::vector<int> holder_set;  // of the overlay's sets, here
    for (const std::vector<int>& holders : pattern.overlay.holders) {
      holder_set.push_back(intern(holders));
    }
    for (const Overlay::Entry& entry : pattern.overlay.entries) {
      const int node = options_.node_of ? options_.node_of(entry.rank) : 0;
      const auto& cells = pattern.overlay.regions[static_cast<size_t>(entry.region)];
      for (const Overlay::Cell& cell : cells) {
        const std::vector<int>& holders =
            pattern.overlay.holders[static_cast<size_t>(cell.holders)];
        const std::int64_t bytes = volume(cell.box) * element * pattern.tensors;
        transfers_ += static_cast<size_t>(pattern.tensors);
        if (std::binary_search(holders.begin(), holders.end(), entry.rank)) {
          pattern.of_cell.push_back(kKept);
          continue;
        }
        const int demand = class_of(holder_set[static_cast<size_t>(cell.holders)], node);
        classes_[static_cast<size_t>(demand)].bytes += bytes;
        needed(entry.rank) += bytes;
        pattern.of_cell.push_back(demand);
      }
    }
  }

  int intern(const std::vector<int>& holders) {
    const auto [found, fresh] = sets_.try_emplace(holders, static_cast<int>(sets_.size()));
    if (fresh) set_list_.push_back(&found->first);
    return found->second;
  }

  /// Demands of nodes that hold nothing of a set are alike.
  int class_of(int set, int node) {
    const std::vector<int>& nodes = nodes_of_set(set);
    const bool holds = std::binary_search(nodes.begin(), nodes.end(), node);
    const auto [found, fresh] =
        class_ids_.try_emplace({set, holds ? node : kElsewhere}, static_cast<int>(classes_.size()));
    if (!fresh) return found->second;
    DemandClass demand{.holders = *set_list_[static_cast<size_t>(set)]};
    if (options_.node_of) {
      for (const int holder : demand.holders) {
        demand.near.push_back(options_.node_of(holder) == node);
      }
    }
    classes_.push_back(std::move(demand));
    return found->second;
  }

  /// Nodes with holders of a set, ascending.
  const std::vector<int>& nodes_of_set(int set) {
    const auto at = static_cast<size_t>(set);
    if (set_nodes_.size() <= at) set_nodes_.resize(set_list_.size());
    std::vector<int>& nodes = set_nodes_[at];
    if (!nodes.empty()) return nodes;
    for (const int holder : *set_list_[at]) {
      nodes.push_back(options_.node_of ? options_.node_of(holder) : 0);
    }
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    return nodes;
  }

  std::int64_t& needed(int rank) {
    needed_.resize(plan_.traffic.size(), 0);
    return needed_[static_cast<size_t>(rank)];
  }

  /// Walks the destinations in ascending order, so that one sender serves neighbours.
  void emit() {
    if (listed_) plan_.transfers.reserve(transfers_ + classes_.size() * 2);
    std::vector<std::vector<size_t>> cell_base;  // of an entry, by pattern
    for (const Pattern& pattern : patterns_) {
      size_t base = 0;
      std::vector<size_t>& bases = cell_base.emplace_back();
      for (const Overlay::Entry& entry : pattern.overlay.entries) {
        bases.push_back(base);
        base += pattern.overlay.regions[static_cast<size_t>(entry.region)].size();
      }
    }
    std::vector<size_t> cursor(patterns_.size(), 0), stop(patterns_.size(), 0);
    for (int rank = 0; rank < static_cast<int>(plan_.traffic.size()); ++rank) {
      for (size_t p = 0; p < patterns_.size(); ++p) {
        const auto& entries = patterns_[p].overlay.entries;
        cursor[p] = stop[p];
        while (stop[p] < entries.size() && entries[stop[p]].rank == rank) ++stop[p];
      }
      received_.clear();
      for (size_t t = 0; t < kind_of_.size(); ++t) {
        const auto p = static_cast<size_t>(pattern_of_[t]);
        const size_t begin = received_.size();
        for (size_t e = cursor[p]; e < stop[p]; ++e) {
          receive(static_cast<int>(t), patterns_[p], e, cell_base[p][e]);
        }
        const auto from = received_.begin() + static_cast<std::ptrdiff_t>(begin);
        const auto less = [](const Transfer& a, const Transfer& b) {
          return box_less(a.box, b.box);
        };
        if (!std::is_sorted(from, received_.end(), less)) std::sort(from, received_.end(), less);
      }
      flush();
    }
  }

  void receive(int tensor, const Pattern& pattern, size_t entry_index, size_t base) {
    const Overlay::Entry& entry = pattern.overlay.entries[entry_index];
    const auto& cells = pattern.overlay.regions[static_cast<size_t>(entry.region)];
    for (size_t i = 0; i < cells.size(); ++i) {
      const int demand = pattern.of_cell[base + i];
      if (demand == kKept) {
        add({tensor, entry.rank, entry.rank, cells[i].box});
      } else {
        dispense(dispensers_[static_cast<size_t>(demand)], {tensor, 0, entry.rank, cells[i].box});
      }
    }
  }

  /// Sends a block, cut along the outermost dim where the share of one sender ends.
  void dispense(Dispenser& from, Transfer block) {
    const ShardedTensor& tensor = layout_of(block.tensor);
    if (block.box.rank == 0) {
      while (!from.last() && from.position + tensor.element_bytes > from.boundary) from.advance();
      from.position += tensor.element_bytes;
      block.source = from.holder();
      return add(block);
    }
    Interval& rows = block.box.dims[static_cast<size_t>(tensor.outer_dim)];
    const std::int64_t row_bytes = volume(block.box) / rows.size() * tensor.element_bytes;
    const std::int64_t end = rows.hi;
    while (rows.lo < end) {
      std::int64_t count = end - rows.lo;
      if (!from.last()) {
        const std::int64_t left = std::max<std::int64_t>(0, from.boundary - from.position);
        count = std::min(count, left / row_bytes);
      }
      if (count > 0) {
        rows.hi = rows.lo + count;
        block.source = from.holder();
        from.position += count * row_bytes;
        add(block);
        rows.lo = rows.hi;
      }
      if (rows.lo < end) from.advance();
    }
  }

  void add(const Transfer& transfer) {
    const std::int64_t bytes = volume(transfer.box) * layout_of(transfer.tensor).element_bytes;
    RankTraffic& destination = plan_.traffic[static_cast<size_t>(transfer.destination)];
    if (transfer.source == transfer.destination) {
      destination.kept += bytes;
    } else {
      destination.received += bytes;
      plan_.traffic[static_cast<size_t>(transfer.source)].sent += bytes;
    }
    received_.push_back(transfer);
  }

  const ShardedTensor& layout_of(int tensor) const {
    return tensors_[static_cast<size_t>(kind_of_[static_cast<size_t>(tensor)])];
  }

  /// Takes up what one destination receives, by source (then tensor and box, as received).
  void flush() {
    counts_.resize(plan_.traffic.size(), 0);
    sources_.clear();
    for (const Transfer& transfer : received_) {
      if (counts_[static_cast<size_t>(transfer.source)]++ == 0) sources_.push_back(transfer.source);
    }
    std::sort(sources_.begin(), sources_.end());
    size_t next = 0;
    for (const int source : sources_) {
      next += std::exchange(counts_[static_cast<size_t>(source)], next);
    }
    order_.resize(received_.size());
    for (size_t i = 0; i < received_.size(); ++i) {
      order_[counts_[static_cast<size_t>(received_[i].source)]++] = i;
    }
    for (const int source : sources_) counts_[static_cast<size_t>(source)] = 0;
    for (const size_t i : order_) {
      digest_.add(received_[i]);
      if (listed_) plan_.transfers.push_back(received_[i]);
    }
  }

  void summarise(const SenderBalance& balance) {
    for (const RankTraffic& rank : plan_.traffic) {
      plan_.bytes_received.value = std::max(plan_.bytes_received.value, rank.received);
      plan_.total_received.value += rank.received;
      plan_.bytes_sent.value = std::max(plan_.bytes_sent.value, rank.sent);
    }
    for (const std::int64_t bytes : needed_) {
      plan_.lower_bound.value = std::max(plan_.lower_bound.value, bytes);
    }
    plan_.min_max_sent.value = balance.min_max;
    plan_.digest = digest_.value();
  }

  std::span<const ShardedTensor> tensors_;
  std::vector<int> kind_of_;
  bool listed_;
  const ReshardOptions& options_;
  ReshardPlan plan_;
  std::vector<Pattern> patterns_;
  std::vector<int> pattern_of_;  // by tensor
  std::map<std::vector<int>, int> sets_;
  std::vector<const std::vector<int>*> set_list_;
  std::vector<std::vector<int>> set_nodes_;  // beside set_list_, empty until asked for
  std::map<std::pair<int, int>, int> class_ids_;
  std::vector<DemandClass> classes_;
  std::vector<Dispenser> dispensers_;
  std::vector<std::int64_t> needed_;
  size_t transfers_ = 0;
  std::vector<Transfer> received_;  // of the destination in hand
  std::vector<int> sources_;        // of these, ascending
  std::vector<size_t> counts_;      // by source: transfers, then their next place in the order
  std::vector<size_t> order_;       // indices into received_
  Digest digest_;
};

ShardedTensor sharded(const Parameter& parameter, DType dtype) {
  return {.name = parameter.name,
          .shape = parameter.shape,
          .element_bytes = size_of(dtype),
          .outer_dim = shard_dim(parameter)};
}

std::vector<Holding> stored(const Parameter& parameter, const RankMap& map) {
  std::vector<Holding> holdings;
  for (size_t i = 0; i < map.ranks.size(); ++i) {
    if (const auto box = stored_box(parameter, map.layout, map.coords[i])) {
      holdings.push_back({map.ranks[i], *box});
    }
  }
  return holdings;
}

ShardedTensor model_tensor(const Parameter& parameter, const RankMap& from, const RankMap& to,
                           DType dtype) {
  ShardedTensor tensor = sharded(parameter, dtype);
  tensor.source = stored(parameter, from);
  for (size_t i = 0; i < to.ranks.size(); ++i) {
    if (const auto box = compute_box(parameter, to.layout, to.coords[i])) {
      tensor.destination.push_back({to.ranks[i], *box});
    }
  }
  return tensor;
}

}  // namespace

std::string_view name_of(ReshardMode mode) {
  return mode == ReshardMode::minimal ? "minimal" : "full";
}

std::string_view name_of(ReshardTransport transport) {
  return kTransports[static_cast<std::size_t>(transport)];
}

std::optional<ReshardTransport> transport_from(std::string_view name) {
  for (std::size_t i = 0; i < kTransports.size(); ++i) {
    if (kTransports[i] == name) return static_cast<ReshardTransport>(i);
  }
  return std::nullopt;
}

ReshardPlan plan_reshard(std::span<const ShardedTensor> tensors, const ReshardOptions& options) {
  std::vector<int> kinds(tensors.size());
  std::iota(kinds.begin(), kinds.end(), 0);
  return Planner(tensors, std::move(kinds), true, options).plan();
}

std::vector<ShardedTensor> model_tensors(const ParameterTable& table, const RankMap& from,
                                         const RankMap& to, DType dtype) {
  std::vector<ShardedTensor> tensors;
  for (const Parameter& parameter : table.rows) {
    tensors.push_back(model_tensor(parameter, from, to, dtype));
  }
  return tensors;
}

ReshardPlan reshard_totals(const ParameterTable& table, const RankMap& from, const RankMap& to,
                           DType dtype, const ReshardOptions& options) {
  AlikeParameters alike = alike_parameters(table, from.layout, to.layout);
  std::vector<ShardedTensor> tensors;
  for (const int row : alike.first) {
    tensors.push_back(model_tensor(table.rows[static_cast<size_t>(row)], from, to, dtype));
  }
  return Planner(tensors, std::move(alike.kind), false, options).plan();
}

std::vector<ShardedTensor> full_gather_tensors(const ParameterTable& table, const RankMap& from,
                                               const RankMap& to, DType dtype) {
  std::vector<ShardedTensor> tensors;
  for (const Parameter& parameter : table.rows) {
    ShardedTensor& tensor = tensors.emplace_back(sharded(parameter, dtype));
    tensor.source = stored(parameter, from);
    for (const int rank : to.ranks) tensor.destination.push_back({rank, whole(parameter.shape)});
  }
  return tensors;
}

}  // namespace tessera
