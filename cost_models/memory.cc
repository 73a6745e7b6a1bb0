#include "cost_models/memory.h"

#include <algorithm>

#include "cost_models/layout/rank_map.h"
#include "cost_models/layout/sharding.h"
#include "cost_models/rank_model.h"
#include "cost_models/spec/split.h"

namespace tessera {
namespace {

bool holds_first(const ParallelLayout&, int stage) { return stage == 0; }
bool holds_last(const ParallelLayout& layout, int stage) { return stage == layout.pp - 1; }

const LayerRange& layers_of(const ParallelLayout& layout, int stage, int chunk) {
  const int index = chunk * layout.pp + stage;
  return layout.stages[static_cast<std::size_t>(index)];
}

}  // namespace

std::int64_t RankModel::kv_heads() const {
  const std::int64_t queries_per_kv = std::max<std::int64_t>(1, model.query_heads / model.kv_heads);
  std::int64_t most = 0;
  if (model.query_heads % tp == 0) {  // equal parts: whole groups, or within one
    const std::int64_t queries = model.query_heads / tp;
    if (queries % queries_per_kv == 0) return queries / queries_per_kv;
    if (queries_per_kv % queries == 0) return 1;
  }
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
          .gathered = a.gathered + b.gathered,
          .communication = a.communication + b.communication,
          .reshard = a.reshard + b.reshard,
          .workspace = a.workspace + b.workspace,
          .reserve = a.reserve + b.reserve};
}

std::array<std::pair<std::string_view, Bytes>, kMemoryClasses> memory_classes(
    const MemoryUse& use) {
  return {{{"weights", use.weights},
           {"gradients", use.gradients},
           {"master_weights", use.master_weights},
           {"optimizer", use.optimizer},
           {"activations", use.activations},
           {"logits", use.logits},
           {"kv_cache", use.kv_cache},
           {"gathered", use.gathered},
           {"communication", use.communication},
           {"reshard", use.reshard},
           {"workspace", use.workspace},
           {"reserve", use.reserve}}};
}

ShardElements shard_elements(const ParameterTable& table, int tp, int ep, int etp) {
  ParallelLayout layout;
  layout.tp = tp;
  layout.stages = even_stages(table.model.layers, 1);
  const auto size = static_cast<std::size_t>(tp);
  ShardElements shards;
  for (auto& kind : shards.layer) kind.assign(size, Elements{});
  shards.last.assign(size, Elements{});
  for (auto* counts : {&shards.first, &shards.both}) counts->assign(size, 0);
  std::array<std::int64_t, kLayerKinds> sample{};  // the first layer of each kind
  sample.fill(-1);
  for (std::int64_t layer = 0; layer < table.model.layers; ++layer) {
    shards.kinds.push_back(kind_of_layer(table.model, layer));
    auto& first = sample[static_cast<std::size_t>(shards.kinds.back())];
    if (first < 0) first = layer;
  }
  for (const Parameter& parameter : table.rows) {
    const bool in_layer = parameter.place == StagePlace::layer;
    std::size_t kind = 0;
    if (in_layer) {
      kind = static_cast<std::size_t>(shards.kinds[static_cast<std::size_t>(parameter.layer)]);
      if (sample[kind] != parameter.layer) continue;
    }
    if (parameter.experts > 0) {  // the largest EP part of the experts, each cut by ETP
      const std::int64_t held = (parameter.experts + ep - 1) / ep;
      std::int64_t each =
          parameter.elements() / (parameter.expert_dim >= 0 ? parameter.experts : 1);
      if (parameter.split_dim >= 0) {
        each = each / parameter.units * ((parameter.units + etp - 1) / etp);
      }
      const bool counted = parameter.expert_dim >= 0 || parameter.expert < held;
      if (!counted) continue;
      for (Elements& rank : in_layer ? shards.layer[kind] : shards.last) {
        rank.expert += parameter.expert_dim >= 0 ? held * each : each;
      }
      continue;
    }
    for (int i = 0; i < tp; ++i) {
      const auto box = compute_box(parameter, layout, {.tp = i});
      if (!box) continue;
      const auto at = static_cast<std::size_t>(i);
      const std::int64_t elements = volume(*box);
      switch (parameter.place) {
        case StagePlace::layer:
          shards.layer[kind][at].dense += elements;
          break;
        case StagePlace::embedding:
          shards.first[at] += elements;
          break;
        case StagePlace::head:
          shards.last[at].dense += elements;
          break;
        case StagePlace::embedding_and_head:
          shards.both[at] += elements;
          break;
      }
    }
  }
  return shards;
}

std::int64_t stage_layers(const ParallelLayout& layout, int stage) {
  std::int64_t layers = 0;
  for (int chunk = 0; chunk < layout.vpp; ++chunk) {
    const LayerRange& range = layers_of(layout, stage, chunk);
    layers += range.last - range.first;
  }
  return layers;
}

LayerCounts stage_layers(const ModelSpec& model, const ParallelLayout& layout, int stage) {
  LayerCounts counts{};
  for (int chunk = 0; chunk < layout.vpp; ++chunk) {
    const LayerRange& range = layers_of(layout, stage, chunk);
    for (std::int64_t layer = range.first; layer < range.last; ++layer) {
      ++counts[static_cast<std::size_t>(kind_of_layer(model, layer))];
    }
  }
  return counts;
}

LayerCounts run_layers(const ModelSpec& model, const LayerRange& chunk, bool last) {
  LayerCounts counts{};
  if (last) counts = mtp_counts(model);
  for (std::int64_t layer = chunk.first; layer < chunk.last; ++layer) {
    ++counts[static_cast<std::size_t>(kind_of_layer(model, layer))];
  }
  return counts;
}

LayerCounts run_layers(const ModelSpec& model, const ParallelLayout& layout, int stage) {
  LayerCounts counts = stage_layers(model, layout, stage);
  if (!holds_last(layout, stage)) return counts;
  const LayerCounts further = mtp_counts(model);
  for (std::size_t kind = 0; kind < counts.size(); ++kind) counts[kind] += further[kind];
  return counts;
}

Elements stage_parts(const ShardElements& shards, const ParallelLayout& layout, int stage,
                     int tp_rank) {
  const auto at = static_cast<std::size_t>(tp_rank);
  const bool first = holds_first(layout, stage), last = holds_last(layout, stage);
  Elements sum;
  for (int chunk = 0; chunk < layout.vpp; ++chunk) {
    const LayerRange& range = layers_of(layout, stage, chunk);
    for (std::int64_t layer = range.first; layer < range.last; ++layer) {
      const LayerKind kind = shards.kinds[static_cast<std::size_t>(layer)];
      sum += shards.layer[static_cast<std::size_t>(kind)][at];
    }
  }
  sum.dense += (first ? shards.first[at] : 0) + (first || last ? shards.both[at] : 0);
  if (last) sum += shards.last[at];
  return sum;
}

std::int64_t stage_elements(const ShardElements& shards, const ParallelLayout& layout, int stage,
                            int tp_rank) {
  return stage_parts(shards, layout, stage, tp_rank).total();
}

Elements stage_parts(const ShardElements& shards, const ParallelLayout& layout, int stage) {
  Elements most;
  for (int i = 0; i < layout.tp; ++i) {
    const Elements here = stage_parts(shards, layout, stage, i);
    if (here.total() > most.total()) most = here;
  }
  return most;
}

std::int64_t stage_elements(const ShardElements& shards, const ParallelLayout& layout, int stage) {
  return stage_parts(shards, layout, stage).total();
}

ShardCounts zero_shards(const ParallelLayout& layout) {
  const int experts = std::max(1, layout.ep * layout.etp);
  const int replicas = layout.dp_shard > 1 ? layout.dp_shard : layout.dp * layout.cp;
  const int block = layout.tp * layout.cp;
  const int dealt = layout.dp_shard > 1 ? block * layout.dp_shard : block * layout.dp;
  return {replicas, std::max(1, dealt / experts)};
}

MemoryUse resident_memory(const Elements& elements, const ParallelLayout& layout,
                          const RoleDTypes& dtypes, bool trained) {
  const ShardCounts parts = zero_shards(layout);
  const auto cut = [&](bool sharded) {
    const auto part = [](std::int64_t count, int by) { return (count + by - 1) / by; };
    return sharded ? part(elements.dense, parts.dense) + part(elements.expert, parts.expert)
                   : elements.total();
  };
  const int zero = layout.dp_shard > 1 ? 3 : layout.zero;
  MemoryUse use;
  use.weights = Bytes{cut(zero >= 3) * size_of(dtypes.param)};
  if (!trained) return use;
  use.gradients = Bytes{cut(zero >= 2) * size_of(dtypes.grad)};
  if (zero == 1 && parts.dense > 1) use.gradients += Bytes{cut(true) * size_of(dtypes.grad)};
  const std::int64_t states = cut(zero >= 1);
  if (dtypes.param != dtypes.master) use.master_weights = Bytes{states * size_of(dtypes.master)};
  use.optimizer = Bytes{states * 2 * size_of(DType::fp32)};
  return use;
}

}  // namespace tessera
