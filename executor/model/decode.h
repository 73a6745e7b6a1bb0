// Decoding with a cache of keys and values, for the rollout (tensor parallel; one pipeline stage).
//
// A slot holds one sequence of at most max_length tokens. Hidden states and logits come out for the
// last token of each sequence. No gradients. Owned by one rank's rollout; calls are collective over
// the tensor-parallel group.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>
#include <span>
#include <vector>

#include "executor/model/decoder.h"

namespace tessera {

class CachedDecoder {
 public:
  /// Keeps references: `weights` and `groups` outlive it. Allocates nothing yet.
  CachedDecoder(const Weights& weights, const ParallelGroups& groups);

  /// Memory for `slots` sequences; earlier contents are lost. Bytes of the cache are returned.
  std::int64_t reserve(std::int64_t slots, std::int64_t max_length);
  /// Gives the cache's memory back.
  void release();
  std::int64_t slots() const { return slots_; }
  std::int64_t max_length() const { return max_length_; }

  /// Runs whole prompts, sequence i into slots[i] (replacing what it held). Returns the final
  /// hidden states of each prompt's last token, [sequences, hidden].
  torch::Tensor prefill(const PackedTokens& prompts, std::span<const std::int64_t> slots);

  /// Copies the sequence of slot from[i] to slot to[i]: samples that share a prompt.
  void copy_slots(std::span<const std::int64_t> from, std::span<const std::int64_t> to);

  /// Appends ids[i] (int64, the weights' device) to slots[i] (distinct, not full) and returns the
  /// hidden states of these tokens, [slots.size(), hidden]. All slots advance in one batch.
  torch::Tensor step(const torch::Tensor& ids, std::span<const std::int64_t> slots);

  /// Tokens in a slot.
  std::int64_t length(std::int64_t slot) const { return lengths_[static_cast<std::size_t>(slot)]; }

 private:
  const Weights& weights_;
  const ParallelGroups& groups_;
  std::int64_t slots_ = 0, max_length_ = 0;
  std::vector<std::int64_t> lengths_;
  std::vector<torch::Tensor> keys_, values_;  // by layer, [slots * max_length, kv_heads, head_dim]
};

}  // namespace tessera
