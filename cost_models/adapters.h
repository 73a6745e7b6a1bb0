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

/// Elements that one tensor-parallel rank trains in a layer of each kind. Of a matrix that is cut
/// by rows A is whole and B is cut, of one that is cut by columns the other way round; Megatron's
/// fused targets share one A.
std::array<std::int64_t, kLayerKinds> adapter_elements(const ParameterTable& table,
                                                       const Lora& lora, int tp);

/// Rows of the table whose matrices have an A and a B, ascending.
std::vector<int> adapted_rows(const ParameterTable& table, const Lora& lora);

/// Names of the modules of those rows, as checkpoints call them ("q_proj"), each once.
std::vector<std::string> adapted_modules(const ParameterTable& table, const Lora& lora);

/// Tensors of the adapters, A and B of each matrix, as a file of adapters has them.
std::int64_t adapter_tensors(const ParameterTable& table, const Lora& lora);

/// Targets that name no linear weight of the model.
std::vector<std::string> unknown_targets(const ParameterTable& table, const Lora& lora);

}  // namespace tessera
