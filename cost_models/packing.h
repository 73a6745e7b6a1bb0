// Sequences in micro-batches of a token limit, longest first into the least loaded (Graham 1969).
//
// The simulator packs drawn lengths, the planner asks how many sequences a micro-batch holds in
// expectation. Pure functions; tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cost_models/spec/workload.h"

namespace tessera {

/// Tokens that one replica, or one of its micro-batches, computes.
struct PackedPart {
  std::int64_t tokens = 0;              // prompts and responses
  std::vector<std::int64_t> responses;  // tokens of each, descending
};

/// `responses` in descending order, each after a prompt of `prompt` tokens; no part takes more than
/// `most` sequences.
std::vector<PackedPart> longest_first(const std::vector<std::int64_t>& responses,
                                      std::int64_t prompt, int parts, std::size_t most);

/// `count` micro-batches of a replica that has as many sequences or more, the fullest first: so the
/// executor orders them (balanced_partition), and replicas wait least for one another.
std::vector<PackedPart> in_micro_batches(const PackedPart& replica, std::int64_t prompt, int count);

/// In which order an engine runs the micro-batches of a call.
enum class BatchOrder {
  fullest_first,
  /// The fullest in the middle and the others on both sides by turns, so that filling and draining
  /// a pipeline takes small ones (verl 0.9.1's rearrange_micro_batches, with dynamic batches).
  fullest_within,
};

/// In this order, what lies the fullest first.
template <class Part>
std::vector<Part> in_order(std::vector<Part> fullest_first, BatchOrder order) {
  if (order == BatchOrder::fullest_first) return fullest_first;
  std::vector<Part> parts;
  for (std::size_t i = fullest_first.size(); i-- > 0;) {
    if (i % 2 == 0) parts.push_back(std::move(fullest_first[i]));
  }
  for (std::size_t i = 1; i < fullest_first.size(); i += 2) {
    parts.push_back(std::move(fullest_first[i]));
  }
  return parts;
}

/// At least `count` micro-batches (never more than sequences), the fewest whose tokens stay within
/// the limit (0 = none); only a sequence that is alone exceeds it.
std::vector<PackedPart> packed(const PackedPart& replica, std::int64_t prompt, std::int64_t limit,
                               int count);

/// How many micro-batches a call of interleaved stages (vpp > 1) has.
enum class InterleavedCount {
  any,  // the last round of pp stays incomplete
  /// A multiple of pp into which a replica's sequences are packed (verl 0.9.1's
  /// rearrange_micro_batches, num_batches_divided_by).
  rounded,
  /// A multiple of pp with equally many sequences in each (Megatron-LM's micro- and global batch
  /// size; core/pipeline_parallel/schedules.py raises a RuntimeError where a remainder is left).
  equal,
};

/// What the number of a call's micro-batches is a multiple of: pp where the stages are interleaved
/// and the engine wants whole rounds, else 1.
int batches_of_round(InterleavedCount rule, int pp, int vpp);

/// True where a replica with so many sequences can have such micro-batches, none of them empty.
bool fills_rounds(InterleavedCount rule, int pp, int vpp, std::int64_t sequences);

/// `count` micro-batches in rounds of `round`: the next multiple, as far as `sequences` reach.
double whole_rounds(double count, double sequences, int round);

/// Sequences of a micro-batch, in expectation over lengths: their tokens by the limit, less what
/// packing leaves free where it holds few.
class ExpectedPacking {
 public:
  ExpectedPacking(const LengthSpec& responses, std::int64_t prompt);
  double sequences(std::int64_t limit) const;
  /// Into how many micro-batches, which hold `held` sequences each, a replica's sequences are cut:
  /// as many as nearly every draw of lengths needs, as all replicas have as many tokens as the
  /// whole batch allots to each. A limit of just the mean would be exceeded by every other batch.
  double micro_batches(double sequences, int replicas, double held) const;

 private:
  PackedPart sample_;  // equally likely lengths; empty where all are alike
  std::int64_t prompt_;
  double mean_;           // tokens of a sequence
  double deviation_ = 0;  // standard deviation of a sequence's tokens, by their mean
};

}  // namespace tessera
