// Which layers of a model are alike: what costs and memory are computed for once.
//
// Pure; any thread.
#pragma once

#include <array>
#include <cstdint>

#include "cost_models/spec/model_spec.h"

namespace tessera {

/// A plain MLP, or experts behind a router; after attention, or after linear attention.
enum class LayerKind { dense, sparse, linear_dense, linear_sparse };
inline constexpr int kLayerKinds = 4;

constexpr bool is_sparse(LayerKind kind) {
  return kind == LayerKind::sparse || kind == LayerKind::linear_sparse;
}
constexpr bool is_linear(LayerKind kind) {
  return kind == LayerKind::linear_dense || kind == LayerKind::linear_sparse;
}

LayerKind kind_of_layer(const ModelSpec& model, std::int64_t layer);

/// Layers by kind.
using LayerCounts = std::array<std::int64_t, kLayerKinds>;

}  // namespace tessera
