// Which layers of a model are alike: what costs and memory are computed for once.
//
// Pure; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

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
  shared_choice_dense,  // attention of the keys chosen in the layer before (IndexerSpec)
  shared_choice_sparse,
  window_sparse,  // of DeepSeek-V4: a window alone, chosen entries or all entries besides; experts
  chosen_sparse,  // behind a router, or (`hash`) such as a table names by the token's id
  all_sparse,
  window_hash,
  chosen_hash,
  all_hash,
};
inline constexpr int kLayerKinds = 16;

/// True when it has experts.
constexpr bool is_sparse(LayerKind kind) {
  return kind == LayerKind::sparse || kind == LayerKind::linear_sparse ||
         kind == LayerKind::experts_alone || kind >= LayerKind::shared_choice_sparse;
}
/// True when a table names its experts by the token's id.
constexpr bool is_hashed(LayerKind kind) { return kind >= LayerKind::window_hash; }
/// True when its attention looks at the keys chosen in the layer before.
constexpr bool shares_choice(LayerKind kind) {
  return kind == LayerKind::shared_choice_dense || kind == LayerKind::shared_choice_sparse;
}
/// Which entries its attention sees beside its window.
constexpr LayerEntries entries_of(LayerKind kind) {
  if (kind == LayerKind::chosen_sparse || kind == LayerKind::chosen_hash) {
    return LayerEntries::chosen;
  }
  return kind == LayerKind::all_sparse || kind == LayerKind::all_hash ? LayerEntries::all
                                                                      : LayerEntries::none;
}
constexpr bool is_one_block(LayerKind kind) {
  return kind >= LayerKind::attention_alone && kind <= LayerKind::experts_alone;
}
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

/// The kinds that a layer of multi-token prediction consists of: one like the model's, with
/// attention of all tokens, and experts where it has some; of a model whose layers are one block
/// each attention and what stands behind it.
std::vector<LayerKind> mtp_kinds(const ModelSpec& model);
/// Layers of these kinds that the model's passes run beside its own.
LayerCounts mtp_counts(const ModelSpec& model);

}  // namespace tessera
