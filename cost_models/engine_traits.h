// What an engine's kernels keep in memory and what it overlaps: switches of the formulas that are
// no choice of a plan.
//
// A plain value. The defaults are Tessera's own executor: flash attention, no dropout, logits a
// slice at a time, every collective exposed.
#pragma once

#include <cstdint>

namespace tessera {

/// Rows of logits that exist at a time (executor/model/scores.h).
inline constexpr std::int64_t kLogitRows = 4096;

struct EngineTraits {
  bool flash_attention = true;           // false: scores of s x s elements are written and kept
  bool dropout = false;                  // masks of one byte per element
  std::int64_t logit_rows = kLogitRows;  // 0 = all rows of a micro-batch at once
  bool overlapped_gradients = false;     // gradients are reduced during the last backward
  bool overlapped_parameters = false;    // FSDP gathers the next layer during this one
  bool streamed_optimizer = false;       // offloaded states pass through a bucket, else as a whole
  bool scattered_hops = false;           // pipeline messages are cut by tp (Megatron-LM)
  bool master_parameters = false;  // FSDP shards fp32 parameters, with no 16-bit copy beside
  double overlap_slowdown = 1.0;         // of kernels that run beside a collective
  double expert_imbalance = 1.0;         // tokens of the busiest expert rank / mean

  bool operator==(const EngineTraits&) const = default;
};

}  // namespace tessera
