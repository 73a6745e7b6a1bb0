#include "cost_models/layout/reshard_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "cost_models/layout/model_tensors.h"
#include "cost_models/layout/overlay.h"
#include "cost_models/layout/reshard_parts.h"
#include "cost_models/layout/sender_balance.h"
#include "cost_models/layout/sharding.h"

namespace tessera {
namespace {

constexpr int kKept = -1;
constexpr int kElsewhere = -1;  // a node without holders

/// Tensors that lie alike share one overlay; demands with the same holders and the same node of the
/// destination share one class. Both make a model of thousands of tensors a small problem.
class ReshardPlanner {
 public:
  /// `kind_of[t]` is the index in `tensors` of what lies as tensor t does; `listed`: with the
  /// transfers, not only their digest.
  ReshardPlanner(std::span<const ShardedTensor> tensors, std::vector<int> kind_of, bool listed,
                 const ReshardOptions& options)
      : tensors_(tensors), kind_of_(std::move(kind_of)), listed_(listed), options_(options) {
    int ranks = 0;
    for (const ShardedTensor& tensor : tensors) {
      for (const Holding& holding : tensor.source) ranks = std::max(ranks, holding.rank + 1);
      for (const Holding& holding : tensor.destination) ranks = std::max(ranks, holding.rank + 1);
    }
    plan_.traffic.resize(static_cast<size_t>(ranks));
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
    std::vector<std::vector<Piece>> pieces;  // by region, cell
    std::vector<int> of_cell;                // by (destination entry, cell): class or kKept
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
    const ShardedTensor& tensor = tensors_[static_cast<size_t>(pattern.first)];
    std::vector<int> holder_set;  // of the overlay's sets, here
    for (const std::vector<int>& holders : pattern.overlay.holders) {
      holder_set.push_back(intern(holders));
    }
    for (const auto& cells : pattern.overlay.regions) {
      std::vector<Piece>& pieces = pattern.pieces.emplace_back();
      for (const Overlay::Cell& cell : cells) pieces.push_back(piece_of(tensor, cell.box));
    }
    for (const Overlay::Entry& entry : pattern.overlay.entries) {
      const int node = options_.node_of ? options_.node_of(entry.rank) : 0;
      const auto region = static_cast<size_t>(entry.region);
      const auto& cells = pattern.overlay.regions[region];
      for (size_t i = 0; i < cells.size(); ++i) {
        const std::vector<int>& holders =
            pattern.overlay.holders[static_cast<size_t>(cells[i].holders)];
        const Bytes bytes = pattern.pieces[region][i].bytes * pattern.tensors;
        transfers_ += static_cast<size_t>(pattern.tensors);
        if (std::binary_search(holders.begin(), holders.end(), entry.rank)) {
          pattern.of_cell.push_back(kKept);
          continue;
        }
        const int demand = class_of(holder_set[static_cast<size_t>(cells[i].holders)], node);
        classes_[static_cast<size_t>(demand)].bytes += bytes;
        needed(entry.rank) += bytes;
        pattern.of_cell.push_back(demand);
      }
    }
  }

  static Piece piece_of(const ShardedTensor& tensor, const Box& box) {
    const Bytes bytes = volume(box) * tensor.element_bytes;
    if (box.rank == 0) return {&box, 0, bytes, bytes};
    const Interval& rows = box.dims[static_cast<size_t>(tensor.outer_dim)];
    return {&box, tensor.outer_dim, bytes, bytes / rows.size()};
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

  Bytes& needed(int rank) {
    needed_.resize(plan_.traffic.size());
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
    by_source_.resize(plan_.traffic.size());
    for (int rank = 0; rank < static_cast<int>(plan_.traffic.size()); ++rank) {
      for (size_t p = 0; p < patterns_.size(); ++p) {
        const auto& entries = patterns_[p].overlay.entries;
        cursor[p] = stop[p];
        while (stop[p] < entries.size() && entries[stop[p]].rank == rank) ++stop[p];
      }
      destination_ = rank;
      for (size_t t = 0; t < kind_of_.size(); ++t) {
        const auto p = static_cast<size_t>(pattern_of_[t]);
        parts_.clear();
        for (size_t e = cursor[p]; e < stop[p]; ++e) {
          const auto region = static_cast<size_t>(patterns_[p].overlay.entries[e].region);
          const int* demand = patterns_[p].of_cell.data() + cell_base[p][e];
          for (const Piece& piece : patterns_[p].pieces[region]) {
            receive(static_cast<int>(t), piece, *demand++);
          }
        }
        take_up();
      }
      flush();
    }
  }

  void receive(int tensor, const Piece& piece, int demand) {
    const Interval rows = piece.box->rank > 0
                              ? piece.box->dims[static_cast<size_t>(piece.outer_dim)]
                              : Interval{0, 1};
    const Part part{tensor, destination_, &piece, rows};
    if (demand == kKept) {
      parts_.push_back(part);
    } else {
      dispense(dispensers_[static_cast<size_t>(demand)], part);
    }
  }

  /// Sends a piece, cut along the outermost dim where the share of one sender ends.
  void dispense(Dispenser& from, Part part) {
    const Bytes row_bytes = part.piece->row_bytes;
    const std::int64_t end = part.rows.hi;
    while (part.rows.lo < end) {
      std::int64_t count = end - part.rows.lo;
      if (!from.last()) {
        const Bytes left = std::max(Bytes{}, from.boundary - from.position);
        if (left < count * row_bytes) count = left.value / row_bytes.value;
      }
      if (count > 0) {
        part.rows.hi = part.rows.lo + count;
        part.source = from.holder();
        from.position += count * row_bytes;
        parts_.push_back(part);
        part.rows.lo = part.rows.hi;
      }
      if (part.rows.lo < end) from.advance();
    }
  }

  /// The parts of one tensor, ascending by box.
  void take_up() {
    if (!std::is_sorted(parts_.begin(), parts_.end(), box_less)) {
      std::sort(parts_.begin(), parts_.end(), box_less);
    }
    RankTraffic& destination = plan_.traffic[static_cast<size_t>(destination_)];
    for (const Part& part : parts_) {
      const Bytes bytes = part.rows.size() * part.piece->row_bytes;
      if (part.source == destination_) {
        destination.kept += bytes;
      } else {
        destination.received += bytes;
        plan_.traffic[static_cast<size_t>(part.source)].sent += bytes;
      }
      std::vector<Part>& same = by_source_[static_cast<size_t>(part.source)];
      if (same.empty()) sources_.push_back(part.source);
      same.push_back(part);
    }
  }

  /// Counts and lists the parts that the destination received, by source (then tensor and box).
  void flush() {
    std::sort(sources_.begin(), sources_.end());
    for (const int source : sources_) {
      std::vector<Part>& parts = by_source_[static_cast<size_t>(source)];
      for (const Part& part : parts) {
        digest_.add(part, destination_);
        if (listed_) list(part);
      }
      parts.clear();
    }
    sources_.clear();
  }

  void list(const Part& part) {
    Transfer& transfer = plan_.transfers.emplace_back();
    transfer = {part.tensor, part.source, destination_, *part.piece->box};
    if (transfer.box.rank > 0) {
      transfer.box.dims[static_cast<size_t>(part.piece->outer_dim)] = part.rows;
    }
  }

  void summarise(const SenderBalance& balance) {
    for (const RankTraffic& rank : plan_.traffic) {
      plan_.bytes_received = std::max(plan_.bytes_received, rank.received);
      plan_.total_received += rank.received;
      plan_.bytes_sent = std::max(plan_.bytes_sent, rank.sent);
    }
    for (const Bytes bytes : needed_) plan_.lower_bound = std::max(plan_.lower_bound, bytes);
    plan_.min_max_sent = balance.min_max;
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
  std::vector<Bytes> needed_;
  size_t transfers_ = 0;
  int destination_ = 0;                       // in hand
  std::vector<Part> parts_;                   // that it receives of one tensor
  std::vector<std::vector<Part>> by_source_;  // that it receives of all
  std::vector<int> sources_;                  // of these
  TransferDigest digest_;
};

}  // namespace

ReshardPlan plan_reshard(std::span<const ShardedTensor> tensors, const ReshardOptions& options) {
  std::vector<int> kinds(tensors.size());
  std::iota(kinds.begin(), kinds.end(), 0);
  return ReshardPlanner(tensors, std::move(kinds), true, options).plan();
}

ReshardPlan reshard_totals(const ParameterTable& table, const RankMap& from, const RankMap& to,
                           DType dtype, const ReshardOptions& options) {
  AlikeParameters alike = alike_parameters(table, from.layout, to.layout);
  std::vector<ShardedTensor> tensors;
  for (const int row : alike.first) {
    tensors.push_back(model_tensor(table.rows[static_cast<size_t>(row)], from, to, dtype));
  }
  return ReshardPlanner(tensors, std::move(alike.kind), false, options).plan();
}

}  // namespace tessera
