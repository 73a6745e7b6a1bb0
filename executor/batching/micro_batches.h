// Which data-parallel rank computes which sequences, and in which micro-batches.
//
// Balanced by tokens with the largest differencing method (Karmarkar and Karp 1982, k-way), the way
// RL trainers balance packed batches. Pure functions of their arguments, so that every rank
// computes the same answer. Lengths are tokens (prompt and response); sequences are named by their
// index.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera {

/// Splits indices into `parts` lists of nearly equal token sums; each list is ascending. With
/// `equal_counts` the lists' sizes differ by at most one. Precondition: parts > 0, lengths > 0.
std::vector<std::vector<int>> balanced_partition(std::span<const std::int64_t> lengths, int parts,
                                                 bool equal_counts);

struct MicroBatchOptions {
  int replicas = 1;              // data-parallel ranks
  std::int64_t token_limit = 0;  // per micro-batch; 0 = no limit
};

/// micro_batches[r][m]: the sequences of micro-batch m on replica r, ascending. Every sequence
/// occurs once. Only a sequence that is alone in its micro-batch may exceed the limit. Every
/// replica has the same number of micro-batches, the fewest that the balanced partition reaches; a
/// list is empty only where a replica has fewer sequences than micro-batches.
std::vector<std::vector<std::vector<int>>> plan_micro_batches(std::span<const std::int64_t> lengths,
                                                              const MicroBatchOptions& options);

}  // namespace tessera
