// A micro-batch as tensors: packed tokens, and which of their hidden states predict what.
#pragma once

#include <span>

#include "executor/model/decoder.h"
#include "executor/train/batch.h"

namespace tessera {

struct PackedMicroBatch {
  PackedTokens tokens;
  torch::Tensor rows;       // int64: the position before each response token
  torch::Tensor targets;    // int64: the response tokens
  torch::Tensor last_rows;  // int64: each sequence's last position
};

/// Packs batch[i] for the given indices, in that order, with one copy to the device. Tokens that
/// nothing looks at (a sequence of their own, at the end) make their number a multiple of
/// `multiple`; no sequences at all give one such sequence.
PackedMicroBatch pack_micro_batch(std::span<const TokenSequence> batch,
                                  std::span<const int> sequences, torch::Device device,
                                  std::int64_t multiple = 1);

}  // namespace tessera
