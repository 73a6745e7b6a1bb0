// Counts of parameters, from the parameter table of one layer of each kind.
#include <algorithm>
#include <array>

#include "cost_models/layout/parameter_table.h"
#include "cost_models/spec/layer_kind.h"

namespace tessera {
namespace {

/// The model with one layer of the given kind, or with none.
ModelSpec only(const ModelSpec& model, LayerKind kind, std::int64_t layers) {
  ModelSpec part = model;
  part.layers = layers;
  part.mtp = MtpUse::left_out;
  const bool one = layers > 0;
  if (part.moe) part.moe->dense_layers.clear();
  if (part.moe && one && !is_sparse(kind)) part.moe->dense_layers = {0};
  if (!part.blocks.empty()) {
    const auto alone =
        std::find_if(kEveryLayerBlock.begin(), kEveryLayerBlock.end(),
                     [kind](LayerBlock block) { return kind_of_block(block) == kind; });
    part.blocks.clear();
    if (one && alone != kEveryLayerBlock.end()) part.blocks = {*alone};
  }
  const auto alone = [one](bool has) {
    return has && one ? std::vector<std::int64_t>{0} : std::vector<std::int64_t>{};
  };
  if (part.moe) part.moe->hash_layers = alone(is_hashed(kind));
  if (part.indexer) part.indexer->shared_layers = alone(shares_choice(kind));
  if (part.compressed) {
    part.compressed->chosen_layers = alone(entries_of(kind) == LayerEntries::chosen);
    part.compressed->all_layers = alone(entries_of(kind) == LayerEntries::all);
  }
  part.full_attention_layers.clear();
  if (one && !is_linear(kind)) part.full_attention_layers = {0};
  return part;
}

/// Parameters of one layer.
std::int64_t layer_parameters(const ModelSpec& model, LayerKind kind) {
  std::int64_t sum = 0;
  for (const Parameter& row : parameter_table(only(model, kind, 1)).rows) {
    if (row.layer >= 0) sum += row.elements();
  }
  return sum;
}

std::int64_t outside_parameters(const ModelSpec& model) {
  return parameter_table(only(model, LayerKind::dense, 0)).elements();
}

}  // namespace

std::int64_t parameter_count(const ModelSpec& model) {
  std::array<std::int64_t, kLayerKinds> layers{};
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    ++layers[static_cast<std::size_t>(kind_of_layer(model, layer))];
  }
  std::int64_t sum = outside_parameters(model);
  for (std::size_t kind = 0; kind < layers.size(); ++kind) {
    if (layers[kind] == 0) continue;
    sum += layers[kind] * layer_parameters(model, static_cast<LayerKind>(kind));
  }
  return held_mtp_layers(model) > 0 ? sum + mtp_parameter_count(model) : sum;
}

std::int64_t expert_parameter_count(const ModelSpec& model) {
  if (!model.moe) return 0;
  const std::int64_t projections = is_gated(model.mlp) ? 3 : 2;
  const std::int64_t f = model.moe->expert_ffn, h = model.moe->width(model.hidden);
  const std::int64_t biases = model.mlp_bias ? (projections - 1) * f + h : 0;
  return projections * f * h + biases;
}

std::int64_t active_parameter_count(const ModelSpec& model) {
  if (!model.moe) return parameter_count(model);
  const std::int64_t idle = model.moe->experts - model.moe->experts_per_token;
  const std::int64_t layers = moe_layer_count(model) + held_mtp_layers(model);
  return parameter_count(model) - layers * idle * expert_parameter_count(model);
}

std::int64_t mtp_parameter_count(const ModelSpec& model) {
  const std::int64_t h = model.hidden;
  if (model.mtp_layers == 0) return 0;
  std::int64_t layer = 0;
  for (const LayerKind kind : mtp_kinds(model)) layer += layer_parameters(model, kind);
  return model.mtp_layers * (layer + 2 * h * h + 3 * h);
}

}  // namespace tessera
