#include "executor/weights/weights.h"

#include <algorithm>
#include <utility>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"
#include "cost_models/layout/sharding.h"
#include "cost_models/spec/families.h"
#include "executor/tensor/rope.h"

namespace tessera {
namespace {

/// Where LayerRows keeps the row of a layer's tensor, by the name after "model.layers.N.".
int* layer_row(LayerRows& rows, const std::string& name) {
  const std::pair<const char*, int*> places[] = {
      {"input_layernorm.weight", &rows.input_norm},
      {"post_attention_layernorm.weight", &rows.post_norm},
      {"self_attn.q_norm.weight", &rows.q_norm},
      {"self_attn.k_norm.weight", &rows.k_norm},
      {"self_attn.q_proj.weight", &rows.q},
      {"self_attn.k_proj.weight", &rows.k},
      {"self_attn.v_proj.weight", &rows.v},
      {"self_attn.o_proj.weight", &rows.o},
      {"mlp.gate_proj.weight", &rows.gate},
      {"mlp.up_proj.weight", &rows.up},
      {"mlp.down_proj.weight", &rows.down},
      {"self_attn.q_proj.bias", &rows.q_bias},
      {"self_attn.k_proj.bias", &rows.k_bias},
      {"self_attn.v_proj.bias", &rows.v_bias},
      {"self_attn.o_proj.bias", &rows.o_bias},
      {"mlp.gate_proj.bias", &rows.gate_bias},
      {"mlp.up_proj.bias", &rows.up_bias},
      {"mlp.down_proj.bias", &rows.down_bias},
      {"mlp.gate.weight", &rows.router},
      {"block_sparse_moe.gate.weight", &rows.router},
      {"mlp.shared_expert.gate_proj.weight", &rows.gate},
      {"mlp.shared_expert.up_proj.weight", &rows.up},
      {"mlp.shared_expert.down_proj.weight", &rows.down},
      {"mlp.shared_expert_gate.weight", &rows.shared_gate},
  };
  for (const auto& [suffix, row] : places) {
    if (name == suffix) return row;
  }
  return nullptr;
}

/// Where LayerRows keeps the row of a routed expert's matrix.
int* expert_row(LayerRows& rows, const Parameter& parameter, const TensorNames& names) {
  const std::pair<std::string_view, std::vector<int>*> places[] = {
      {names.gate, &rows.expert_gates},
      {names.up, &rows.expert_ups},
      {names.down, &rows.expert_downs},
  };
  for (const auto& [module, of_expert] : places) {
    if (!parameter.name.ends_with("." + std::string(module) + ".weight")) continue;
    of_expert->resize(static_cast<std::size_t>(parameter.experts), -1);
    return &(*of_expert)[static_cast<std::size_t>(parameter.expert)];
  }
  return nullptr;
}

ModelRows model_rows(const ParameterTable& table) {
  const TensorNames& names = facts_of(table.model.family).tensors;
  ModelRows rows;
  rows.layers.resize(static_cast<std::size_t>(table.model.layers));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const Parameter& parameter = table.rows[i];
    const int row = static_cast<int>(i);
    if (parameter.layer >= 0) {
      const std::string prefix = std::string(names.layers) + std::to_string(parameter.layer) + ".";
      LayerRows& layer = rows.layers[static_cast<std::size_t>(parameter.layer)];
      int* place = parameter.expert >= 0 ? expert_row(layer, parameter, names)
                                         : layer_row(layer, parameter.name.substr(prefix.size()));
      TESSERA_CHECK(place != nullptr);
      *place = row;
    } else if (parameter.name == names.embedding) {
      rows.embedding = row;
      if (parameter.place == StagePlace::embedding_and_head) rows.head = row;
    } else if (parameter.name == std::string(names.last_norm) + ".weight") {
      rows.final_norm = row;
    } else {
      rows.head = row;
    }
  }
  return rows;
}

}  // namespace

at::ScalarType scalar_type(DType type) {
  switch (type) {
    case DType::fp32:
      return at::kFloat;
    case DType::bf16:
      return at::kBFloat16;
    case DType::fp16:
      return at::kHalf;
    case DType::int64:
      return at::kLong;
    case DType::int32:
      return at::kInt;
    case DType::uint8:
      return at::kByte;
  }
  return at::kFloat;
}

DType dtype_of(at::ScalarType type) {
  for (const DType candidate :
       {DType::fp32, DType::bf16, DType::fp16, DType::int64, DType::int32, DType::uint8}) {
    if (scalar_type(candidate) == type) return candidate;
  }
  throw Error(ExitCode::internal, std::string("no wire type for ") + c10::toString(type));
}

const torch::Tensor& Weights::at(const std::string& name) const {
  const auto row = table.find(name);
  TESSERA_CHECK(row && holds(*row));
  return tensors[static_cast<std::size_t>(*row)];
}

std::vector<torch::Tensor> arena_tensors(const ArenaLayout& arena, std::size_t rows,
                                         const torch::Tensor& storage) {
  std::vector<torch::Tensor> tensors(rows);
  for (const ArenaSlot& slot : arena.slots) {
    const std::vector<std::int64_t> shape = slot.memory_shape();
    const std::int64_t offset = slot.range.offset / arena.element_bytes;
    tensors[static_cast<std::size_t>(slot.tensor)] =
        torch::empty({0}, storage.options())
            .set_(storage.storage(), storage.storage_offset() + offset, shape,
                  c10::contiguous_strides(shape));
  }
  return tensors;
}

Weights make_parameters(const ParameterTable& table, const ParallelLayout& layout,
                        const RankCoord& coord, DType dtype, torch::Device device,
                        torch::Tensor storage) {
  Weights weights{.table = table, .layout = layout, .coord = coord, .dtype = dtype};
  weights.arena = arena_layout(table, layout, coord, dtype);
  const std::int64_t elements = weights.arena.bytes / weights.arena.element_bytes;
  if (!storage.defined()) {
    const auto options = torch::TensorOptions().dtype(scalar_type(dtype)).device(device);
    storage = torch::zeros({elements}, options);
  }
  TORCH_CHECK(storage.is_contiguous() && storage.numel() == elements &&
              storage.scalar_type() == scalar_type(dtype));
  weights.storage = storage;
  weights.tensors = arena_tensors(weights.arena, table.rows.size(), storage);
  return weights;
}

Weights make_weights(const ParameterTable& table, const ParallelLayout& layout,
                     const RankCoord& coord, DType dtype, torch::Device device,
                     torch::Tensor storage) {
  Weights weights = make_parameters(table, layout, coord, dtype, device, std::move(storage));
  weights.rows = model_rows(table);
  weights.inverse_frequencies = rope_frequencies(table.model.rope, table.model.head_dim).to(device);
  return weights;
}

HeadRange head_range(const ModelSpec& model, int tp, int tp_rank) {
  const std::int64_t share = model.query_heads / model.kv_heads;
  HeadRange heads{.query = split(model.query_heads, tp, tp_rank)};
  heads.kv = {heads.query.lo / share, (heads.query.hi + share - 1) / share};
  for (std::int64_t query = heads.query.lo; query < heads.query.hi; ++query) {
    heads.kv_of_query.push_back(query / share - heads.kv.lo);
  }
  return heads;
}

bool HeadRange::uniform() const {
  if (kv.empty() || query.size() % kv.size() != 0) return false;
  const std::int64_t share = query.size() / kv.size();
  for (std::size_t i = 0; i < kv_of_query.size(); ++i) {
    if (kv_of_query[i] != static_cast<std::int64_t>(i) / share) return false;
  }
  return true;
}

Interval vocab_range(const Weights& weights) {
  return split(weights.model().vocab, weights.layout.tp, weights.coord.tp);
}

Interval counted_range(const Parameter& parameter, const ParallelLayout& layout,
                       const RankCoord& coord) {
  const bool tied_copy = parameter.place == StagePlace::embedding_and_head && coord.pp != 0;
  const auto own = compute_box(parameter, layout, coord);
  if (!own || tied_copy) return {};
  const auto dim = static_cast<std::size_t>(std::max(parameter.split_dim, 0));
  const std::int64_t local = own->dims[dim].size();
  const bool expert = parameter.experts > 0;  // whose parts do not overlap
  if ((expert ? expert_coord(layout, coord).etp : coord.tp) == 0) return {0, local};
  if (parameter.split_dim < 0) return {};
  if (expert) return {0, local};
  RankCoord neighbour = coord;
  --neighbour.tp;
  const auto before = compute_box(parameter, layout, neighbour);
  const std::int64_t shared = before ? before->dims[dim].hi - own->dims[dim].lo : 0;
  return {std::max(shared, std::int64_t{0}), local};
}

Interval counted_in_role(const Parameter& parameter, const ParallelLayout& layout,
                         const RankCoord& coord) {
  const bool first = parameter.experts > 0
                         ? expert_coord(layout, coord).edp == 0
                         : coord.dp_replicate == 0 && coord.dp_shard == 0 && coord.cp == 0;
  return first ? counted_range(parameter, layout, coord) : Interval{};
}

}  // namespace tessera
