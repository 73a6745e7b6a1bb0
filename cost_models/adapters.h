// Low-rank adapters: what is trained beside frozen weights, in elements.
//
// A plain value and pure functions over the parameter table. A matrix W [out, in] of the layers
// becomes W + (alpha / rank) B A with A [rank, in] and B [out, rank] (Hu et al. 2021,
// arXiv:2106.09685); rank (in + out) elements are trained, W is not.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cost_models/layer_shape.h"
#include "cost_models/layout/parameter_table.h"
#include "cost_models/layout/rank_map.h"

namespace tessera {

struct Lora {
  std::int64_t rank = 0;  // 0 = none: every weight is trained
  double alpha = 16;
  /// Last parts of module names ("q_proj"; Megatron's "linear_qkv"); empty = every linear weight of
  /// the layers but the router and the routed experts (peft's "all-linear": experts are no modules
  /// of their own in transformers 5).
  std::vector<std::string> targets;
  bool merged = false;  // the rollout receives W + B A; else the adapters alone, beside its own W

  bool used() const { return rank > 0; }
  bool moves_adapters() const { return used() && !merged; }  // and no weights in a reshard
  bool operator==(const Lora&) const = default;
};

/// Elements that the fullest tensor-parallel rank trains in a layer of each kind. Of a matrix that
/// is cut by rows A is whole and B is cut, of one that is cut by columns the other way round;
/// Megatron's fused targets share one A.
std::array<std::int64_t, kLayerKinds> adapter_elements(const ParameterTable& table,
                                                       const Lora& lora, int tp);

/// Elements of the adapters of the whole model.
std::int64_t adapter_count(const ParameterTable& table, const Lora& lora);

/// Rows of the table whose matrices have an A and a B, ascending.
std::vector<int> adapted_rows(const ParameterTable& table, const Lora& lora);

/// Names of the modules of those rows, as checkpoints call them ("q_proj"), each once.
std::vector<std::string> adapted_modules(const ParameterTable& table, const Lora& lora);

/// Tensors of the adapters, A and B of each matrix, as a file of adapters has them.
std::int64_t adapter_tensors(const ParameterTable& table, const Lora& lora);

/// Targets that name no linear weight of the model.
std::vector<std::string> unknown_targets(const ParameterTable& table, const Lora& lora);

/// "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight" (peft's name) of
/// "model.layers.0.self_attn.q_proj.weight".
std::string peft_name_of_a(const std::string& weight);
std::string peft_name_of_b(const std::string& weight);
/// Of the two kinds of names.
bool is_peft_a(const std::string& name);

/// The adapters as a table of parameters of their own, layer by layer in the order of adapted_rows:
/// all of a layer's A, then its B, named as peft names them. The one that meets the dim along which
/// tensor parallelism cuts the matrix is cut by the matrix' own units, so that a rank has the
/// adapters of what it computes; the other one is whole on every rank of the group. Precondition:
/// has_adapter_table.
ParameterTable adapter_table(const ParameterTable& model, const Lora& lora);

/// False where an expert's matrix or a slice of a fused tensor is adapted.
bool has_adapter_table(const ParameterTable& model, const Lora& lora);

/// Layout, place and ranks of a role as its adapters have them where data-parallel ranks hold equal
/// ones, whatever they share of the model (AdapterTraits::replicated): without shards.
ParallelLayout adapter_layout(const ParallelLayout& layout);
RankCoord adapter_coord(const ParallelLayout& layout, const RankCoord& coord);
RankMap adapter_map(const RankMap& map);

}  // namespace tessera
