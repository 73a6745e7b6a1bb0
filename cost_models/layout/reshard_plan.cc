#include "cost_models/layout/reshard_plan.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "cost_models/layout/model_tensors.h"
#include "cost_models/layout/overlay.h"
#include "cost_models/layout/reshard_parts.h"
#include "cost_models/layout/sender_balance.h"
#include "cost_models/layout/sharding.h"

namespace tessera {
namespace {

constexpr int kKept = -1;

/// The two sides of tensors, each kept once.
struct Sides {
  std::vector<std::vector<HeldBox>> held;
  std::vector<Wanted> wanted;
  int ranks = 0;

  void hold(std::span<const Holding> source) {
    count(source);
    held.push_back(held_boxes(source));
  }
  void want(std::span<const Holding> destination) {
    count(destination);
    wanted.push_back(wanted_boxes(destination));
  }

 private:
  void count(std::span<const Holding> holdings) {
    for (const Holding& holding : holdings) ranks = std::max(ranks, holding.rank + 1);
  }
};

/// Tensors that lie alike: indices into Sides.
struct Kind {
  int held = 0, wanted = 0;
  int outer_dim = 0;
  Bytes element_bytes;
  auto operator<=>(const Kind&) const = default;
};

/// Lists of holdings that were seen, each with a number of its own.
class DistinctHoldings {
 public:
  /// The number of a list, and whether it is new. Keeps the span.
  std::pair<int, bool> number(std::span<const Holding> holdings) {
    std::vector<int>& same = by_hash_[hash_of(holdings)];
    for (const int known : same) {
      const auto& other = lists_[static_cast<size_t>(known)];
      if (std::equal(other.begin(), other.end(), holdings.begin(), holdings.end())) {
        return {known, false};
      }
    }
    same.push_back(static_cast<int>(lists_.size()));
    lists_.push_back(holdings);
    return {same.back(), true};
  }

 private:
  static std::uint64_t hash_of(std::span<const Holding> holdings) {
    std::uint64_t hash = 14695981039346656037ULL;
    const auto mix = [&hash](std::int64_t value) {
      hash = (hash ^ static_cast<std::uint64_t>(value)) * 1099511628211ULL;
    };
    for (const Holding& holding : holdings) {
      mix(holding.rank);
      for (int d = 0; d < holding.box.rank; ++d) {
        mix(holding.box.dims[static_cast<size_t>(d)].lo);
        mix(holding.box.dims[static_cast<size_t>(d)].hi);
      }
    }
    return hash;
  }

  std::map<std::uint64_t, std::vector<int>> by_hash_;
  std::vector<std::span<const Holding>> lists_;
};

/// Tensors that lie alike share one overlay; demands with the same holders and the same node of the
/// destination share one class. Both make a model of thousands of tensors a small problem.
class ReshardPlanner {
 public:
  /// `kind_of[t]` is the index in `kinds` of what lies as tensor t does, `names[k]` stands for
  /// these tensors in messages. `listed`: with the transfers, not only their digest.
  ReshardPlanner(Sides sides, const std::vector<Kind>& kinds, const std::vector<std::string>& names,
                 std::vector<int> kind_of, bool listed, const ReshardOptions& options)
      : sides_(std::move(sides)), pattern_of_(std::move(kind_of)), listed_(listed) {
    plan_.traffic.resize(static_cast<size_t>(sides_.ranks));
    needed_.resize(plan_.traffic.size());
    by_node_ = options.node_of != nullptr;
    for (int rank = 0; rank < sides_.ranks; ++rank) {
      node_.push_back(by_node_ ? options.node_of(rank) : 0);
    }
    for (size_t k = 0; k < kinds.size(); ++k) {
      const auto& held = sides_.held[static_cast<size_t>(kinds[k].held)];
      patterns_.push_back(
          {.kind = kinds[k], .overlay = overlay_of(held, wanted_by(kinds[k]), names[k])});
    }
    for (const int pattern : pattern_of_) ++patterns_[static_cast<size_t>(pattern)].tensors;
  }

  ReshardPlan plan() {
    for (Pattern& pattern : patterns_) classify(pattern);
    SenderBalance balance = balance_senders(classes_, static_cast<int>(plan_.traffic.size()));
    for (const auto& shares : balance.shares) dispensers_.emplace_back(shares);
    emit();
    summarise(balance);
    return std::move(plan_);
  }

 private:
  struct Pattern {
    Kind kind;
    Overlay overlay;
    std::int64_t tensors = 0;
    size_t stride = 0;          // the most cells of a region
    std::vector<Piece> pieces;  // by (region, cell), `stride` apart
    std::vector<int> of_cell;   // by (destination entry, cell) likewise: class or kKept
  };

  const Wanted& wanted_by(const Kind& kind) const {
    return sides_.wanted[static_cast<size_t>(kind.wanted)];
  }

  void classify(Pattern& pattern) {
    std::vector<int> holder_set;  // of the overlay's sets, here
    for (const std::vector<int>& holders : pattern.overlay.holders) {
      holder_set.push_back(intern(holders));
    }
    for (const auto& cells : pattern.overlay.regions) {
      pattern.stride = std::max(pattern.stride, cells.size());
    }
    for (const auto& cells : pattern.overlay.regions) {
      for (size_t i = 0; i < pattern.stride; ++i) {
        Piece& piece = pattern.pieces.emplace_back();
        if (i >= cells.size()) continue;
        piece = piece_of(pattern.kind, cells[i].box);
        piece.last = i + 1 == cells.size();
      }
    }
    const std::vector<Wanted::Entry>& entries = wanted_by(pattern.kind).entries;
    pattern.of_cell.assign(entries.size() * pattern.stride, kKept);
    for (size_t e = 0; e < entries.size(); ++e) {
      const int rank = entries[e].rank, node = node_[static_cast<size_t>(rank)];
      const auto region = static_cast<size_t>(entries[e].region);
      const auto& cells = pattern.overlay.regions[region];
      transfers_ += cells.size() * static_cast<size_t>(pattern.tensors);
      for (size_t i = 0; i < cells.size(); ++i) {
        const auto set = static_cast<size_t>(cells[i].holders);
        const std::vector<int>& holders = pattern.overlay.holders[set];
        if (std::binary_search(holders.begin(), holders.end(), rank)) continue;
        const Bytes bytes = pattern.pieces[region * pattern.stride + i].bytes * pattern.tensors;
        const int demand = class_of(holder_set[set], node);
        classes_[static_cast<size_t>(demand)].bytes += bytes;
        needed_[static_cast<size_t>(rank)] += bytes;
        pattern.of_cell[e * pattern.stride + i] = demand;
      }
    }
  }

  static Piece piece_of(const Kind& kind, const Box& box) {
    const Bytes bytes = volume(box) * kind.element_bytes;
    if (box.rank == 0) return {box, 0, true, bytes, bytes};
    const Interval& rows = box.dims[static_cast<size_t>(kind.outer_dim)];
    return {box, kind.outer_dim, true, bytes, bytes / rows.size()};
  }

  int intern(const std::vector<int>& holders) {
    const auto [found, fresh] = sets_.try_emplace(holders, static_cast<int>(sets_.size()));
    if (fresh) set_list_.push_back(&found->first);
    return found->second;
  }

  /// Demands of nodes that hold nothing of a set are alike.
  int class_of(int set, int node) {
    SetClasses& own = classes_of(set);
    const auto at = std::lower_bound(own.nodes.begin(), own.nodes.end(), node);
    const bool holds = at != own.nodes.end() && *at == node;
    int& known = own.classes[holds ? static_cast<size_t>(at - own.nodes.begin()) + 1 : 0];
    if (known >= 0) return known;
    known = static_cast<int>(classes_.size());
    DemandClass& demand = classes_.emplace_back();
    demand.holders = *set_list_[static_cast<size_t>(set)];
    if (!by_node_) return known;
    for (const int holder : demand.holders) {
      demand.near.push_back(node_[static_cast<size_t>(holder)] == node);
    }
    return known;
  }

  /// Nodes with holders of a set, ascending, and the classes of demands of that set: of any other
  /// node's first, then of theirs; -1: there is none yet.
  struct SetClasses {
    std::vector<int> nodes, classes;
  };
  SetClasses& classes_of(int set) {
    const auto at = static_cast<size_t>(set);
    if (of_set_.size() <= at) of_set_.resize(set_list_.size());
    SetClasses& own = of_set_[at];
    if (!own.classes.empty()) return own;
    for (const int holder : *set_list_[at]) {
      own.nodes.push_back(node_[static_cast<size_t>(holder)]);
    }
    std::sort(own.nodes.begin(), own.nodes.end());
    own.nodes.erase(std::unique(own.nodes.begin(), own.nodes.end()), own.nodes.end());
    own.classes.assign(own.nodes.size() + 1, -1);
    return own;
  }

  /// Walks the destinations in ascending order, so that one sender serves neighbours.
  void emit() {
    if (listed_) plan_.transfers.reserve(transfers_ + classes_.size() * 2);
    std::vector<size_t> cursor(sides_.wanted.size(), 0), stop(sides_.wanted.size(), 0);
    by_source_.resize(plan_.traffic.size());
    for (int rank = 0; rank < static_cast<int>(plan_.traffic.size()); ++rank) {
      bool any = false;
      for (size_t w = 0; w < sides_.wanted.size(); ++w) {
        const auto& entries = sides_.wanted[w].entries;
        cursor[w] = stop[w];
        while (stop[w] < entries.size() && entries[stop[w]].rank == rank) ++stop[w];
        any = any || cursor[w] < stop[w];
      }
      if (!any) continue;
      destination_ = rank;
      for (size_t t = 0; t < pattern_of_.size(); ++t) {
        const Pattern& pattern = patterns_[static_cast<size_t>(pattern_of_[t])];
        const auto w = static_cast<size_t>(pattern.kind.wanted);
        if (cursor[w] == stop[w]) continue;
        const size_t first = parts_.size();
        for (size_t e = cursor[w]; e < stop[w]; ++e) {
          const auto region = static_cast<size_t>(sides_.wanted[w].entries[e].region);
          receive(static_cast<int>(t), &pattern.pieces[region * pattern.stride],
                  &pattern.of_cell[e * pattern.stride]);
        }
        take_up(first);
      }
      flush();
    }
  }

  /// The pieces of a region, each as its demand says.
  void receive(int tensor, const Piece* piece, const int* demand) {
    for (bool last = false; !last; ++piece, ++demand) {
      last = piece->last;
      const Part part{tensor, destination_, piece, piece->rows()};
      if (*demand == kKept) {
        parts_.push_back(part);
      } else {
        dispense(dispensers_[static_cast<size_t>(*demand)], part);
      }
    }
  }

  /// Sends a piece, cut along the outermost dim where the share of one sender ends.
  void dispense(Dispenser& from, Part part) {
    const std::int64_t end = part.rows.hi;
    while (part.rows.lo < end) {
      const std::int64_t count = from.rows(part.piece->row_bytes, end - part.rows.lo);
      if (count > 0) {
        part.rows.hi = part.rows.lo + count;
        part.source = from.holder();
        from.sent(count * part.piece->row_bytes);
        parts_.push_back(part);
        part.rows.lo = part.rows.hi;
      }
      if (part.rows.lo < end) from.advance();
    }
  }

  /// The parts of one tensor, those from `first` on, ascending by box.
  void take_up(size_t first) {
    const auto begin = parts_.begin() + static_cast<std::ptrdiff_t>(first);
    if (!std::is_sorted(begin, parts_.end(), box_less)) std::sort(begin, parts_.end(), box_less);
    RankTraffic& destination = plan_.traffic[static_cast<size_t>(destination_)];
    for (size_t p = first; p < parts_.size(); ++p) {
      const Part& part = parts_[p];
      const Bytes bytes = part.rows.size() * part.piece->row_bytes;
      if (part.source == destination_) {
        destination.kept += bytes;
      } else {
        destination.received += bytes;
        plan_.traffic[static_cast<size_t>(part.source)].sent += bytes;
      }
      if (p > 0 && parts_[p - 1].source == part.source) continue;
      std::vector<size_t>& runs = by_source_[static_cast<size_t>(part.source)];
      if (runs.empty()) sources_.push_back(part.source);
      runs.push_back(p);
    }
  }

  /// Counts and lists the parts that the destination received, by source (then tensor and box).
  void flush() {
    std::sort(sources_.begin(), sources_.end());
    for (const int source : sources_) {
      std::vector<size_t>& runs = by_source_[static_cast<size_t>(source)];
      for (const size_t run : runs) {
        for (size_t p = run; p < parts_.size() && parts_[p].source == source; ++p) {
          digest_.add(parts_[p], destination_);
          if (listed_) list(parts_[p]);
        }
      }
      runs.clear();
    }
    sources_.clear();
    parts_.clear();
  }

  void list(const Part& part) {
    Transfer& transfer = plan_.transfers.emplace_back();
    transfer = {part.tensor, part.source, destination_, part.piece->box};
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

  Sides sides_;
  std::vector<int> pattern_of_;  // by tensor
  bool listed_, by_node_ = false;
  std::vector<int> node_;  // by rank
  ReshardPlan plan_;
  std::vector<Pattern> patterns_;
  std::map<std::vector<int>, int> sets_;
  std::vector<const std::vector<int>*> set_list_;
  std::vector<SetClasses> of_set_;  // beside set_list_, empty until asked for
  std::vector<DemandClass> classes_;
  std::vector<Dispenser> dispensers_;
  std::vector<Bytes> needed_;  // by rank
  size_t transfers_ = 0;
  int destination_ = 0;                         // in hand
  std::vector<Part> parts_;                     // that it receives, by tensor
  std::vector<std::vector<size_t>> by_source_;  // where runs of parts of a source begin
  std::vector<int> sources_;                    // of these
  TransferDigest digest_;
};

}  // namespace

ReshardPlan plan_reshard(std::span<const ShardedTensor> tensors, const ReshardOptions& options) {
  Sides sides;
  DistinctHoldings sources, destinations;
  std::map<Kind, int> known;
  std::vector<Kind> kinds;
  std::vector<std::string> names;
  std::vector<int> kind_of;
  for (const ShardedTensor& tensor : tensors) {
    const auto [held, fresh_source] = sources.number(tensor.source);
    if (fresh_source) sides.hold(tensor.source);
    const auto [wanted, fresh_destination] = destinations.number(tensor.destination);
    if (fresh_destination) sides.want(tensor.destination);
    const Kind kind{held, wanted, tensor.outer_dim, tensor.element_bytes};
    const auto [found, fresh] = known.try_emplace(kind, static_cast<int>(kinds.size()));
    kind_of.push_back(found->second);
    if (!fresh) continue;
    kinds.push_back(kind);
    names.push_back(tensor.name);
  }
  return ReshardPlanner(std::move(sides), kinds, names, std::move(kind_of), true, options).plan();
}

ReshardPlan reshard_totals(const ParameterTable& table, const RankMap& from, const RankMap& to,
                           DType dtype, const ReshardOptions& options) {
  const auto row = [&](int number) -> const Parameter& {
    return table.rows[static_cast<size_t>(number)];
  };
  Sides sides;
  const AlikeParameters sources = alike_parameters(table, from.layout, from.layout);
  for (const int first : sources.first) sides.hold(stored_holdings(row(first), from));
  const AlikeParameters destinations = alike_parameters(table, to.layout, to.layout);
  for (const int first : destinations.first) sides.want(compute_holdings(row(first), to));
  AlikeParameters alike = alike_parameters(table, from.layout, to.layout);
  std::vector<Kind> kinds;
  std::vector<std::string> names;
  for (const int first : alike.first) {
    const auto at = static_cast<size_t>(first);
    kinds.push_back(
        {sources.kind[at], destinations.kind[at], shard_dim(row(first)), Bytes{size_of(dtype)}});
    names.push_back(row(first).name);
  }
  return ReshardPlanner(std::move(sides), kinds, names, std::move(alike.kind), false, options)
      .plan();
}

}  // namespace tessera
