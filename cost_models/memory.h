// Bytes that one rank needs, by class and phase.
//
// Pure functions over the parameter table: parameters are counted exactly, tensor by tensor, with
// the split rule. What is counted follows the executor: ZeRO-1 shards master weights and Adam's
// moments, gradients stay whole, attention is flash, batches are packed, logits exist kLogitRows at
// a time. Symbols: e element bytes, h hidden, f ffn columns, n_q and n_kv heads, d head dim, V
// vocabulary, t tensor parallel.
#pragma once

#include <cstdint>
#include <vector>

#include "cost_models/layout/parameter_table.h"
#include "cost_models/spec/dtype.h"
#include "cost_models/spec/model_spec.h"
#include "cost_models/spec/parallel_layout.h"

namespace tessera {

/// What a training forward pass keeps for its backward pass.
enum class Recompute { none, selective, full };

/// Bytes of one rank in one phase, by class. Classes that a role does not have are zero.
struct MemoryUse {
  std::int64_t weights = 0, gradients = 0, master_weights = 0, optimizer = 0, activations = 0,
               logits = 0, kv_cache = 0, communication = 0, reshard = 0, workspace = 0, reserve = 0;

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
               prefill_tokens = 0;  // per micro-batch and model replica
  std::int64_t max_sequences = 0;   // rollout: sequences decoded at once per replica
  bool operator==(const Batching&) const = default;
};

struct Offload {
  bool parameters = false, gradients = false, optimizer = false;
  bool operator==(const Offload&) const = default;
};

/// What one rank of a tensor-parallel group holds of each operator. Heads and columns that do not
/// divide count the largest part.
struct RankModel {
  ModelSpec model;
  int tp = 1;
  DType dtype = DType::bf16;

  std::int64_t query_heads() const { return largest(model.query_heads); }
  std::int64_t kv_heads() const;  // that the rank's query heads use, at most
  std::int64_t ffn() const { return largest(model.ffn); }
  std::int64_t vocab() const { return largest(model.vocab); }

 private:
  std::int64_t largest(std::int64_t units) const { return (units + tp - 1) / tp; }
};

/// Rows of logits that exist at a time (executor/model/scores.h).
inline constexpr std::int64_t kLogitRows = 4096;

MemoryUse operator+(const MemoryUse& a, const MemoryUse& b);

/// Elements by place, for every tensor-parallel rank: of one layer (all layers are alike), of what
/// only the first stage, only the last stage, and both (a tied embedding) hold.
struct ShardElements {
  std::vector<std::int64_t> layer, first, last, both;
  std::vector<std::int64_t> layer_tensors, outside_tensors;  // how many tensors these are
};
ShardElements shard_elements(const ParameterTable& table, int tp);

/// Elements of the rank at (tp_rank, stage), before any ZeRO-3 sharding; equals the sum of the
/// volumes of compute_box.
std::int64_t stage_elements(const ShardElements& shards, const ParallelLayout& layout, int stage,
                            int tp_rank);
/// The same for the fullest tensor-parallel rank of the stage.
std::int64_t stage_elements(const ShardElements& shards, const ParallelLayout& layout, int stage);

/// Layers that a stage holds, all its chunks together.
std::int64_t stage_layers(const ParallelLayout& layout, int stage);

/// Weights, and for a trained role gradients, master weights (none where the parameters have the
/// master's type) and Adam's two fp32 moments. ZeRO-1 cuts the last two by dp and adds the part's
/// reduced gradients, ZeRO-2 cuts gradients as well, ZeRO-3 everything.
MemoryUse resident_memory(std::int64_t elements, const ParallelLayout& layout,
                          const RoleDTypes& dtypes, bool trained);

/// Bytes that one token leaves in one layer for the backward pass. Korthikanti et al. 2022, eq. 2,
/// without dropout, with flash attention (no s^2 terms) and SwiGLU: both norms' inputs and outputs
/// 4 h; q, k, v and the attention's output (2 n_q + 2 n_kv) d / t; gate, up and their product
/// 3 f / t (silu(gate) is computed again); elements of e bytes. `full` keeps the layer's input, h;
/// `selective` drops the product, f / t.
double layer_activation_bytes(const RankModel& rank, Recompute recompute);

/// Micro-batches whose activations stage `stage` holds at once under 1F1B: min(m, p - stage)
/// (Narayanan et al. 2021, sec. 2.2).
int micro_batches_in_flight(int micro_batches, int pp, int stage);

/// Activations and workspace of a training call on one stage, `tokens` per micro-batch. With full
/// recompute one layer's activations exist besides the kept inputs.
MemoryUse training_memory(const RankModel& rank, std::int64_t layers, bool last_stage,
                          double tokens, int in_flight, Recompute recompute);
/// The same of a forward pass without gradients.
MemoryUse inference_memory(const RankModel& rank, bool last_stage, double tokens);
/// KV cache of `slots` sequences of at most `max_length` tokens, and the buffers of one step.
/// 2 n_kv d L e per token.
MemoryUse rollout_memory(const RankModel& rank, DType kv, std::int64_t slots,
                         std::int64_t max_length, double prefill_tokens);

}  // namespace tessera
