// What replicas with few sequences each wait for: in expectation over their lengths, the slowest
// one's tokens and the number of micro-batches that they all make.
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
#include <vector>

#include "cost_models/packing.h"
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
  FewSequences(const LengthSpec& responses, std::int64_t prompt);

  /// Whether these are few: all that follows is of such.
  bool are(const DealtSequences& dealt) const;
  /// Under this token limit, the same number on every replica: 1 to all sequences, a mean. It does
  /// not rise with the limit.
  double micro_batches(const DealtSequences& dealt, std::int64_t limit);
  /// In so many micro-batches on each replica. `together` replicas begin every micro-batch at the
  /// same time, as those do that share the layers' shards; 1 = each runs by itself.
  SlowestShare slowest(const DealtSequences& dealt, int together, int micro_batches);

 private:
  // Batches of sequences, each a list of its replicas' lengths; and what was asked of them.
  struct Batches {
    std::vector<std::vector<PackedPart>> replicas;       // [batch][replica]
    std::vector<std::int64_t> fullest;                   // tokens of a replica, [batch]
    std::vector<std::vector<std::int64_t>> least_limit;  // [micro-batches - 1][batch]
    std::map<std::int64_t, double> counts;               // by token limit
    std::map<std::array<int, 2>, SlowestShare> shares;   // by together, micro-batches
  };
  Batches& batches(const DealtSequences& dealt);
  /// The least limits under which that many micro-batches of each replica are within it.
  const std::vector<std::int64_t>& least_limit(Batches& batches, std::size_t micro_batches) const;
  std::vector<std::vector<std::int64_t>> lengths(std::size_t sequences, std::size_t of) const;

  LengthSpec responses_;
  std::int64_t prompt_;
  std::map<DealtSequences, Batches> known_;
};

}  // namespace tessera
