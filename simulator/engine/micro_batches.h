// Sequences of drawn lengths on replicas and in micro-batches, as balanced as a packing gets.
//
// Longest first into the least loaded (Graham 1969): replicas get equal counts of sequences, every
// replica the same number of micro-batches, the fewest whose token sums stay
// within the limit. The executor balances with a finer method; sums of a micro-batch differ by at
// most one sequence, which is all that a time depends on. Pure functions; tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cost_models/compute.h"
#include "cost_models/packing.h"

namespace tessera {

struct MicroBatch {
  TokenBatch batch;      // prompts and responses
  double responses = 0;  // tokens that are scored
};

/// result[r][m] of replica r, from `response_tokens` after prompts of `prompt_tokens` each. Only a
/// sequence that is alone exceeds `token_limit` (0 = no limit). Micro-batches are never empty: a
/// replica with fewer sequences than others have micro-batches has as many as sequences. Their
/// number is a multiple of `round` (batches_of_round) as far as all replicas' sequences reach;
/// their order is the engine's. Where it counts `sequences`, no micro-batch has more of them, and
/// neither limit nor round cuts.
std::vector<std::vector<MicroBatch>> pack_micro_batches(
    std::span<const std::int64_t> response_tokens, std::int64_t prompt_tokens, int replicas,
    std::int64_t token_limit, int round = 1, BatchOrder order = BatchOrder::fullest_first,
    std::int64_t sequences = 0);

}  // namespace tessera
