// A micro-batch as tensors: packed tokens, and which of their hidden states predict what.
#pragma once

#include <span>

#include "executor/batching/batch.h"
#include "executor/model/decoder.h"

namespace tessera {

/// Rows and targets are of the tokens that this rank holds. Who holds a response token's row, and a
/// sequence's last, of all the batch: one owner each, in the batch's order.
struct PackedMicroBatch {
  PackedTokens tokens;
  torch::Tensor rows;       // int64: the position before each response token
  torch::Tensor targets;    // int64: the response tokens
  torch::Tensor last_rows;  // int64: each sequence's last position
  std::vector<int> row_owners, last_owners;
  std::int64_t held = 0;  // this rank's rows that are tokens of the sequences: the first ones
};

/// Packs batch[i] for the given indices, in that order, with one copy to the device. Tokens that
/// nothing looks at make the number of this rank's rows a multiple of `multiple`; no sequences at
/// all give such tokens alone.
PackedMicroBatch pack_micro_batch(std::span<const TokenSequence> batch,
                                  std::span<const int> sequences, torch::Device device,
                                  std::int64_t multiple = 1, const ContextSlice& slice = {});

}  // namespace tessera
