#include "cost_models/memory.h"

#include <algorithm>
#include <cmath>

#include "cost_models/layout/rank_map.h"
#include "cost_models/layout/sharding.h"
#include "cost_models/spec/split.h"

namespace tessera {
namespace {

std::int64_t rounded(double bytes) { return static_cast<std::int64_t>(std::ceil(bytes)); }

bool holds_first(const ParallelLayout&, int stage) { return stage == 0; }
bool holds_last(const ParallelLayout& layout, int stage) { return stage == layout.pp - 1; }

// Logits in the model's type and fp32 and their exponentials (executor/model/scores.cc); the
// backward pass has gradients of both kinds besides.
std::int64_t logits_bytes(const RankModel& rank, double tokens, bool training) {
  if (rank.model.head == ModelHead::value) return 0;
  const double rows = std::min(tokens, static_cast<double>(kLogitRows));
  const double element = static_cast<double>(size_of(rank.dtype));
  const double per_entry =
      training ? 2 * element + 3.0 * size_of(DType::fp32) : element + 2.0 * size_of(DType::fp32);
  return rounded(rows * static_cast<double>(rank.vocab()) * per_entry);
}

// Inputs and outputs of a layer's widest operator besides the residual stream.
double layer_buffers(const RankModel& rank, double tokens) {
  const double hidden = static_cast<double>(rank.model.hidden);
  const double attention =
      static_cast<double>((2 * rank.query_heads() + 2 * rank.kv_heads()) * rank.model.head_dim);
  const double mlp = 3.0 * static_cast<double>(rank.ffn());
  return tokens * static_cast<double>(size_of(rank.dtype)) *
         (3.0 * hidden + std::max(attention, mlp));
}

}  // namespace

std::int64_t RankModel::kv_heads() const {
  const std::int64_t queries_per_kv = std::max<std::int64_t>(1, model.query_heads / model.kv_heads);
  std::int64_t most = 0;
  for (int i = 0; i < tp; ++i) {
    const Interval query = split(model.query_heads, tp, i);
    if (query.empty()) continue;
    most = std::max(most, (query.hi - 1) / queries_per_kv - query.lo / queries_per_kv + 1);
  }
  return most;
}

MemoryUse operator+(const MemoryUse& a, const MemoryUse& b) {
  return {.weights = a.weights + b.weights,
          .gradients = a.gradients + b.gradients,
          .master_weights = a.master_weights + b.master_weights,
          .optimizer = a.optimizer + b.optimizer,
          .activations = a.activations + b.activations,
          .logits = a.logits + b.logits,
          .kv_cache = a.kv_cache + b.kv_cache,
          .communication = a.communication + b.communication,
          .reshard = a.reshard + b.reshard,
          .workspace = a.workspace + b.workspace,
          .reserve = a.reserve + b.reserve};
}

ShardElements shard_elements(const ParameterTable& table, int tp) {
  ParallelLayout layout;
  layout.tp = tp;
  layout.stages = even_stages(table.model.layers, 1);
  const auto size = static_cast<std::size_t>(tp);
  ShardElements shards;
  for (auto* counts : {&shards.layer, &shards.first, &shards.last, &shards.both,
                       &shards.layer_tensors, &shards.outside_tensors}) {
    counts->assign(size, 0);
  }
  for (const Parameter& parameter : table.rows) {
    if (parameter.layer > 0) continue;
    for (int i = 0; i < tp; ++i) {
      const auto box = compute_box(parameter, layout, {.tp = i});
      if (!box) continue;
      const auto at = static_cast<std::size_t>(i);
      const std::int64_t elements = volume(*box);
      switch (parameter.place) {
        case StagePlace::layer:
          shards.layer[at] += elements;
          break;
        case StagePlace::embedding:
          shards.first[at] += elements;
          break;
        case StagePlace::head:
          shards.last[at] += elements;
          break;
        case StagePlace::embedding_and_head:
          shards.both[at] += elements;
          break;
      }
      ++(parameter.place == StagePlace::layer ? shards.layer_tensors : shards.outside_tensors)[at];
    }
  }
  return shards;
}

std::int64_t stage_layers(const ParallelLayout& layout, int stage) {
  std::int64_t layers = 0;
  for (int chunk = 0; chunk < layout.vpp; ++chunk) {
    const LayerRange& range = layout.stages[static_cast<std::size_t>(chunk * layout.pp + stage)];
    layers += range.last - range.first;
  }
  return layers;
}

std::int64_t stage_elements(const ShardElements& shards, const ParallelLayout& layout, int stage,
                            int tp_rank) {
  const auto at = static_cast<std::size_t>(tp_rank);
  const bool first = holds_first(layout, stage), last = holds_last(layout, stage);
  return stage_layers(layout, stage) * shards.layer[at] + (first ? shards.first[at] : 0) +
         (last ? shards.last[at] : 0) + (first || last ? shards.both[at] : 0);
}

std::int64_t stage_elements(const ShardElements& shards, const ParallelLayout& layout, int stage) {
  std::int64_t most = 0;
  for (int i = 0; i < layout.tp; ++i) {
    most = std::max(most, stage_elements(shards, layout, stage, i));
  }
  return most;
}

MemoryUse resident_memory(std::int64_t elements, const ParallelLayout& layout,
                          const RoleDTypes& dtypes, bool trained) {
  const auto cut = [](std::int64_t count, int parts) { return (count + parts - 1) / parts; };
  const int zero = layout.dp_shard > 1 ? 3 : layout.zero;
  const int shards = layout.dp_shard > 1 ? layout.dp_shard : layout.dp();
  MemoryUse use;
  use.weights = cut(elements, zero >= 3 ? shards : 1) * size_of(dtypes.param);
  if (!trained) return use;
  use.gradients = cut(elements, zero >= 2 ? shards : 1) * size_of(dtypes.grad);
  if (zero == 1 && shards > 1) use.gradients += cut(elements, shards) * size_of(dtypes.grad);
  const std::int64_t states = cut(elements, zero >= 1 ? shards : 1);
  use.master_weights = dtypes.param == dtypes.master ? 0 : states * size_of(dtypes.master);
  use.optimizer = states * 2 * size_of(DType::fp32);
  return use;
}

double layer_activation_bytes(const RankModel& rank, Recompute recompute) {
  const auto hidden = static_cast<double>(rank.model.hidden);
  const auto bytes = static_cast<double>(size_of(rank.dtype));
  if (recompute == Recompute::full) return bytes * hidden;
  const auto attention =
      static_cast<double>((2 * rank.query_heads() + 2 * rank.kv_heads()) * rank.model.head_dim);
  const double mlp =
      (recompute == Recompute::selective ? 2.0 : 3.0) * static_cast<double>(rank.ffn());
  return bytes * (4.0 * hidden + attention + mlp);
}

int micro_batches_in_flight(int micro_batches, int pp, int stage) {
  return std::min(micro_batches, pp - stage);
}

MemoryUse training_memory(const RankModel& rank, std::int64_t layers, bool last_stage,
                          double tokens, int in_flight, Recompute recompute) {
  const double stage_input = static_cast<double>(size_of(rank.dtype) * rank.model.hidden);
  double kept = static_cast<double>(layers) * layer_activation_bytes(rank, recompute) + stage_input;
  if (last_stage) kept += 2.0 * stage_input;  // the final norm's input and output
  MemoryUse use;
  use.activations = rounded(kept * tokens * in_flight);
  if (recompute == Recompute::full) {
    use.activations += rounded(layer_activation_bytes(rank, Recompute::none) * tokens);
  }
  use.workspace = rounded(layer_buffers(rank, tokens));
  if (last_stage) use.logits = logits_bytes(rank, tokens, true);
  return use;
}

MemoryUse inference_memory(const RankModel& rank, bool last_stage, double tokens) {
  MemoryUse use;
  use.activations = rounded(layer_buffers(rank, tokens));
  if (last_stage) use.logits = logits_bytes(rank, tokens, false);
  return use;
}

MemoryUse rollout_memory(const RankModel& rank, DType kv, std::int64_t slots,
                         std::int64_t max_length, double prefill_tokens) {
  MemoryUse use;
  use.kv_cache = 2 * rank.kv_heads() * rank.model.head_dim * rank.model.layers * size_of(kv) *
                 slots * max_length;
  use.activations = rounded(layer_buffers(rank, std::max(prefill_tokens, 1.0 * slots)));
  use.logits = rounded(static_cast<double>(slots) * 2.0 * size_of(DType::fp32) *
                       static_cast<double>(rank.vocab() + rank.model.vocab));
  return use;
}

}  // namespace tessera
