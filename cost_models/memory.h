// Bytes that one rank needs, by class and phase.
//
// Pure functions over the parameter table: parameters are counted exactly, tensor by tensor, with the
// split rule. Bytes of one rank; no function allocates anything on a device. Symbols: e element
// bytes, h hidden, f ffn columns, n_q and n_kv heads, d head dim, V vocabulary, t tensor parallel,
// p stages, m micro-batches.
#pragma once

#include <cstdint>
#include <vector>

#include "cost_models/layout/parameter_table.h"
#include "cost_models/layout/rank_map.h"
#include "cost_models/spec/dtype.h"
#include "cost_models/spec/parallel_layout.h"

namespace tessera {

/// What a training forward pass keeps for its backward pass.
enum class Recompute { none, selective, full };

/// Bytes of one rank in one phase, by class. Classes that a role does not have are zero.
struct MemoryUse {
  std::int64_t weights = 0, gradients = 0, master_weights = 0, optimizer = 0, activations = 0,
               logits = 0, kv_cache = 0, communication = 0, reshard = 0, workspace = 0,
               reserve = 0;

  std::int64_t total() const {
    return weights + gradients + master_weights + optimizer + activations + logits + kv_cache +
           communication + reshard + workspace + reserve;
  }
  bool operator==(const MemoryUse&) const = default;
};

struct RoleDTypes {
  DType param = DType::bf16, grad = DType::fp32, master = DType::fp32, kv = DType::bf16,
        wire = DType::bf16;
  bool operator==(const RoleDTypes&) const = default;
};

/// Token limits per call and the optimizer's batch. 0 = the role has no such call.
struct Batching {
  std::int64_t mini_batch = 0;  // sequences per optimizer step, over all ranks
  std::int64_t update_tokens = 0, log_prob_tokens = 0, values_tokens = 0, reward_tokens = 0,
               prefill_tokens = 0;      // per micro-batch and model replica
  std::int64_t max_sequences = 0;       // rollout: sequences decoded at once per replica
  bool operator==(const Batching&) const = default;
};

struct Offload {
  bool parameters = false, gradients = false, optimizer = false;
  bool operator==(const Offload&) const = default;
};

}  // namespace tessera
