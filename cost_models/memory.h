// Bytes that one rank needs, by class and phase.
//
// Pure functions over the parameter table: parameters are counted exactly, tensor by tensor, with
// the split rule. What kernels keep follows EngineTraits; batches are packed. Symbols: e element
// bytes, h hidden, f ffn columns, n_q and n_kv heads, d head dim, V vocabulary, t tensor, c
// context, p pipeline parallel, v virtual stages, E experts of which k per token, s sequence, b
// micro-batch.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cost_models/layer_shape.h"
#include "cost_models/layout/parameter_table.h"
#include "cost_models/spec/dtype.h"
#include "cost_models/spec/model_spec.h"
#include "cost_models/spec/parallel_layout.h"
#include "cost_models/spec/units.h"

namespace tessera {

enum class LossKernel;
struct RankModel;

/// How much a training forward pass drops that its backward pass makes again.
enum class Recompute { none, selective, full };

/// Bytes of one rank in one phase, by class. Classes that a role does not have are zero. `gathered`
/// is what FSDP makes whole for a moment, parameters and their gradients; `communication` what
/// other collectives send from and receive in.
struct MemoryUse {
  Bytes weights, gradients, master_weights, optimizer, activations, logits, kv_cache, gathered,
      communication, reshard, workspace, reserve;

  Bytes total() const {
    return weights + gradients + master_weights + optimizer + activations + logits + kv_cache +
           gathered + communication + reshard + workspace + reserve;
  }
  bool operator==(const MemoryUse&) const = default;
};

/// Every class with its bytes, under the names that files and messages use.
inline constexpr int kMemoryClasses = 12;
std::array<std::pair<std::string_view, Bytes>, kMemoryClasses> memory_classes(const MemoryUse& use);

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
  /// Rollout: tokens that a replica's paged cache of keys and values holds, prompts included; 0 =
  /// room for max_sequences of the longest.
  std::int64_t kv_cache_tokens = 0;
  /// Sequences of a micro-batch on a replica where an engine counts these: its limit of tokens is
  /// then what memory has to hold, and cuts nothing. 0 = the tokens cut.
  std::int64_t update_sequences = 0, log_prob_sequences = 0;
  bool operator==(const Batching&) const = default;
};

struct Offload {
  bool parameters = false, gradients = false, optimizer = false;
  auto operator<=>(const Offload&) const = default;
};

MemoryUse operator+(const MemoryUse& a, const MemoryUse& b);

/// Elements of one rank, those of routed experts apart: their gradients and optimizer states are
/// shared by other ranks.
struct Elements {
  std::int64_t dense = 0, expert = 0;
  std::int64_t total() const { return dense + expert; }
  Elements& operator+=(const Elements& other) {
    dense += other.dense;
    expert += other.expert;
    return *this;
  }
  bool operator==(const Elements&) const = default;
};
inline Elements operator*(std::int64_t count, const Elements& e) {
  return {count * e.dense, count * e.expert};
}

/// Elements by place, for every tensor-parallel rank: of one layer of each kind, of what only the
/// first stage, only the last stage (multi-token prediction's layers among it), and both (a tied
/// embedding) hold. Expert elements are those of the fullest of the ep x etp ranks.
struct ShardElements {
  std::array<std::vector<Elements>, kLayerKinds> layer;
  std::vector<Elements> last;
  std::vector<std::int64_t> first, both;
  std::vector<LayerKind> kinds;  // of every layer
};
ShardElements shard_elements(const ParameterTable& table, int tp, int ep = 1, int etp = 1);

/// Elements of the rank at (tp_rank, stage), before any ZeRO-3 sharding; their total equals the sum
/// of the volumes of compute_box.
Elements stage_parts(const ShardElements& shards, const ParallelLayout& layout, int stage,
                     int tp_rank);
std::int64_t stage_elements(const ShardElements& shards, const ParallelLayout& layout, int stage,
                            int tp_rank);
/// Elements of the fullest tensor-parallel rank of the stage.
Elements stage_parts(const ShardElements& shards, const ParallelLayout& layout, int stage);
std::int64_t stage_elements(const ShardElements& shards, const ParallelLayout& layout, int stage);

/// Layers that a stage holds, all its chunks together; and by kind.
std::int64_t stage_layers(const ParallelLayout& layout, int stage);
LayerCounts stage_layers(const ModelSpec& model, const ParallelLayout& layout, int stage);
/// Layers by kind that run in a chunk of the model: its own, and in the last one those of
/// multi-token prediction.
LayerCounts run_layers(const ModelSpec& model, const LayerRange& chunk, bool last);
/// The same of all chunks of a stage.
LayerCounts run_layers(const ModelSpec& model, const ParallelLayout& layout, int stage);

/// Ranks over which ZeRO cuts what belongs to dense parameters and to routed experts: the replicas
/// of each, dp cp and tp cp dp / (ep etp) (Megatron-LM's data-parallel groups); dp_shard where
/// parameters are sharded.
struct ShardCounts {
  int dense = 1, expert = 1;
};
ShardCounts zero_shards(const ParallelLayout& layout);

/// Weights, and for a trained role gradients, master weights (none where the parameters have the
/// master's type) and Adam's two fp32 moments. ZeRO-1 cuts the last two and adds the part's
/// reduced gradients, ZeRO-2 cuts gradients as well, ZeRO-3 everything (Rajbhandari et al. 2020).
MemoryUse resident_memory(const Elements& elements, const ParallelLayout& layout,
                          const RoleDTypes& dtypes, bool trained);
inline MemoryUse resident_memory(std::int64_t elements, const ParallelLayout& layout,
                                 const RoleDTypes& dtypes, bool trained) {
  return resident_memory(Elements{elements, 0}, layout, dtypes, trained);
}

/// Bytes that one token of a rank's own (its 1/c of the sequence) leaves in one layer for the
/// backward pass, in sequences of `sequence` tokens. Korthikanti et al. 2022, sec. 4 and eq. 2, for
/// any attention and MLP: both norms' inputs and outputs 4 h (and two dropout masks 2 h bytes), cut
/// by t under sequence parallelism; q, k, v and the attention's output; without flash attention the
/// softmax s a / t (with dropout its mask and its output besides: 5 a s / t bytes in all); the
/// first MLP projection's output and the second's input, (1 or 2) f / t + f / t. Latent attention
/// keeps the compressed q, k, v too; sparse layers the router's scores, k h of inputs and k h of
/// outputs of the experts, and their columns (Megatron-LM's grouped MLP). `full` keeps the layer's
/// input; `selective` drops the softmax, or with flash attention the gated product, and
/// what latent attention projects from its compressed queries, keys and values.
Traffic layer_activation_bytes(const RankModel& rank, Recompute recompute, double sequence = 0);

/// Micro-batches whose activations stage `stage` holds at once under 1F1B: min(m, p - stage)
/// (Narayanan et al. 2021, sec. 2.2).
int micro_batches_in_flight(int micro_batches, int pp, int stage);
/// Micro-batches in flight with v chunks per stage, in units of the whole stage's layers:
/// min(m v, 2 (p - stage - 1) + (v - 1) p + 1) / v (Megatron-LM
/// core/pipeline_parallel/schedules.py); on the first stage 1 + (p - 1) / (p v) times the layers of
/// p micro-batches (Korthikanti et al. 2022, sec. 4.2.3).
double stage_batches_in_flight(int micro_batches, int pp, int vpp, int stage);

/// Most layers, each once per micro-batch, whose activations `stage` holds at once under the same
/// schedule, counted chunk by chunk: stages whose chunks differ (Llama 3's first holds only the
/// embedding, its last only the head; arXiv:2407.21783, sec. 3.3.2) hold fewer than an even share.
double layers_in_flight(const ParallelLayout& layout, int micro_batches, int stage);

/// Bytes that a logit and its gradient take at once, at most; without gradients the logits and what
/// the loss makes of them or a temperature's copy: nothing in place, where verl's scoring of five
/// plans held one copy (benchmarks/results/h200x2-verl-plans.json).
Traffic bytes_per_logit(LossKernel loss, DType type, bool training);

/// The part of a call that one stage runs.
struct StageLoad {
  LayerCounts layers{};
  bool last = true;
  double tokens = 0;     // of a micro-batch of the replica, all its cp ranks together
  double sequence = 0;   // tokens of the longest sequence (unfused attention)
  double in_flight = 1;  // micro-batches whose activations exist at once
};

/// Activations and workspace of a training call. With full recompute one layer's activations exist
/// besides the kept inputs.
MemoryUse training_memory(const RankModel& rank, const StageLoad& load, Recompute recompute);
MemoryUse training_memory(const RankModel& rank, std::int64_t layers, bool last_stage,
                          double tokens, int in_flight, Recompute recompute);
/// Activations and logits of a forward pass without gradients.
MemoryUse inference_memory(const RankModel& rank, bool last_stage, double tokens);
/// KV cache of `slots` sequences with room for `kept_tokens` of each on `layers` layers (0 = all;
/// of a model with linear attention or state spaces its share of layers with attention, and states
/// in those), and the buffers of one step. Per token and layer 2 n_kv d e; latent attention caches
/// (r_kv + d_rope) e, whole on every rank (DeepSeek-AI 2024, arXiv:2405.04434, sec. 2.1).
MemoryUse rollout_memory(const RankModel& rank, DType kv, std::int64_t slots, double kept_tokens,
                         double prefill_tokens, std::int64_t layers = 0);
Bytes cache_bytes_per_token(const RankModel& rank, DType kv);
/// What a layer of linear attention or of state spaces keeps of each sequence: the states in fp32
/// and the convolution's last inputs in the cache's type (transformers 5.17's cache_utils.py,
/// vLLM's MambaStateShapeCalculator).
Traffic recurrent_state_bytes(const RankModel& rank, const LayerShape& shape, DType kv);

/// What a call with `tokens` per micro-batch gathers and sends. `gathered`: FSDP's parameters of
/// two layers (this one and the one prefetched; all `layers` of the stage where the engine keeps
/// them for the backward pass) and one layer's whole gradients. `communication`: the ring's second
/// block of keys and values and Ulysses' copies of q, k, v and output; what expert parallelism
/// sends and receives.
MemoryUse communication_memory(const RankModel& rank, const ParallelLayout& layout,
                               const Elements& fullest_layer, double tokens,
                               const RoleDTypes& dtypes, bool training, std::int64_t layers = 0);

}  // namespace tessera
