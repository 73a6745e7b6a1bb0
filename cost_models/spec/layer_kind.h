// Which layers of a model are alike: what costs and memory are computed for once.
//
// Pure; any thread.
#pragma once

#include <array>
#include <cstdint>

#include "cost_models/spec/model_spec.h"

namespace tessera {

/// A plain MLP, or experts behind a router; after attention, or after linear attention. Or one
/// block alone (ModelSpec::blocks).
enum class LayerKind {
  dense,
  sparse,
  linear_dense,
  linear_sparse,
  attention_alone,
  state_space_alone,
  mlp_alone,
  experts_alone,
};
inline constexpr int kLayerKinds = 8;

/// True when it has experts.
constexpr bool is_sparse(LayerKind kind) {
  return kind == LayerKind::sparse || kind == LayerKind::linear_sparse ||
         kind == LayerKind::experts_alone;
}
constexpr bool is_one_block(LayerKind kind) { return kind >= LayerKind::attention_alone; }
/// True when a mixer of tokens stands in it; false for an MLP or experts alone.
constexpr bool has_mixer(LayerKind kind) {
  return kind != LayerKind::mlp_alone && kind != LayerKind::experts_alone;
}
/// True when an MLP or experts stand in it.
constexpr bool has_mlp(LayerKind kind) {
  return kind != LayerKind::attention_alone && kind != LayerKind::state_space_alone;
}
constexpr bool is_linear(LayerKind kind) {
  return kind == LayerKind::linear_dense || kind == LayerKind::linear_sparse;
}

LayerKind kind_of_layer(const ModelSpec& model, std::int64_t layer);
/// The kind of a layer that is one such block.
LayerKind kind_of_block(LayerBlock block);

/// Layers by kind.
using LayerCounts = std::array<std::int64_t, kLayerKinds>;

}  // namespace tessera
