// What replicas with few sequences each wait for: in expectation over their lengths, the slowest
// one's tokens and the number of micro-batches that they all make; and by how much the
// micro-batches of a replica, few sequences or many, differ.
//
// With many sequences a replica the balanced ones are alike, and a micro-batch holds what
// ExpectedPacking says; with few the longest sequence decides. A batch of fixed lengths, equally
// likely ones in all, is dealt and packed by the rule of packing.h, which the simulator follows
// with drawn lengths; batches of few lengths several times over. The sum is an integral over
// lengths, not a draw: nothing of it is random. Keeps what it has worked out; one thread. Tokens;
// ratios.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "cost_models/packing.h"
#include "cost_models/pipeline/uneven_batches.h"
#include "cost_models/spec/workload.h"

namespace tessera {

/// What a replica that the others wait for computes, by the mean of all replicas.
struct SlowestShare {
  double tokens = 1, squared = 1;  // prompts and responses; sums of lengths and of their squares
  double responses = 1;            // tokens that are scored
  auto operator<=>(const SlowestShare&) const = default;
};

/// Sequences in equal counts on replicas, longest first into the least loaded.
struct DealtSequences {
  double sequences = 0;  // of a replica
  int replicas = 1;
  auto operator<=>(const DealtSequences&) const = default;
};

class FewSequences {
 public:
  /// `order`: of a replica's micro-batches.
  FewSequences(const LengthSpec& responses, std::int64_t prompt,
               BatchOrder order = BatchOrder::fullest_first);

  /// Whether these are few: all that follows, but for spread, is of such.
  bool are(const DealtSequences& dealt) const;
  /// Under this token limit, the same number on every replica: 1 to all sequences, a mean. It does
  /// not rise with the limit.
  double micro_batches(const DealtSequences& dealt, std::int64_t limit);
  /// In so many micro-batches on each replica. `together` replicas begin every micro-batch at the
  /// same time, as those do that share the layers' shards; 1 = each runs by itself.
  SlowestShare slowest(const DealtSequences& dealt, int together, int micro_batches);
  /// By what factor, at least 1, the pass takes longer on equal stages than with as many equal
  /// micro-batches of the slowest share (of the replica's own sequences, where these are not few):
  /// that of the expected loads, in the order of the micro-batches, of the replicas that take
  /// longest.
  double spread(const DealtSequences& dealt, int together, int micro_batches,
                const StagedPass& pass);

 private:
  // Of replicas that begin each of so many micro-batches together.
  struct Waited {
    SlowestShare share;
    // Of the group whose pipelines take longest, in expectation, by the mean micro-batch that is
    // priced: the slowest share's, of many sequences the group's own. The fullest first.
    std::vector<double> loads;
  };
  // Batches of sequences, each a list of its replicas' lengths; and what was asked of them.
  struct Batches {
    std::vector<std::vector<PackedPart>> replicas;       // [batch][replica]
    std::vector<std::int64_t> fullest;                   // tokens of a replica, [batch]
    std::vector<std::vector<std::int64_t>> least_limit;  // [micro-batches - 1][batch]
    std::map<std::int64_t, double> counts;               // by token limit
    std::map<std::array<int, 2>, Waited> waited;         // by together, micro-batches
  };
  Batches& batches(const DealtSequences& dealt);
  const Waited& waited(const DealtSequences& dealt, int together, int micro_batches);
  /// The least limits under which that many micro-batches of each replica are within it.
  const std::vector<std::int64_t>& least_limit(Batches& batches, std::size_t micro_batches) const;
  std::vector<std::vector<std::int64_t>> lengths(std::size_t sequences, std::size_t of) const;
  /// Whether spread is 1 without a look at any batch.
  bool even(const DealtSequences& dealt, int micro_batches, const StagedPass& pass) const;

  LengthSpec responses_;
  std::int64_t prompt_;
  BatchOrder order_;
  std::map<DealtSequences, Batches> known_;
  std::map<std::tuple<DealtSequences, int, int, StagedPass>, double> spreads_;
  std::map<std::pair<StagedPass, int>, double> equal_lengths_;  // by micro-batches
};

}  // namespace tessera
