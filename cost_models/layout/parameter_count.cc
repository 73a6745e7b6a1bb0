// Counts of parameters, from the parameter table of one layer of each kind.
#include "cost_models/layout/parameter_table.h"

namespace tessera {
namespace {

/// The model with layers of the given kind alone, `layers` of them.
ModelSpec only(const ModelSpec& model, bool sparse, std::int64_t layers) {
  ModelSpec part = model;
  part.layers = layers;
  if (part.moe) part.moe->dense_layers.clear();
  if (part.moe && !sparse) {
    for (std::int64_t layer = 0; layer < layers; ++layer) part.moe->dense_layers.push_back(layer);
  }
  return part;
}

/// Parameters of one layer.
std::int64_t layer_parameters(const ModelSpec& model, bool sparse) {
  std::int64_t sum = 0;
  for (const Parameter& row : parameter_table(only(model, sparse, 1)).rows) {
    if (row.layer >= 0) sum += row.elements();
  }
  return sum;
}

std::int64_t outside_parameters(const ModelSpec& model) {
  return parameter_table(only(model, false, 0)).elements();
}

}  // namespace

std::int64_t parameter_count(const ModelSpec& model) {
  const std::int64_t sparse = moe_layer_count(model), dense = model.layers - sparse;
  return outside_parameters(model) + (dense > 0 ? dense * layer_parameters(model, false) : 0) +
         (sparse > 0 ? sparse * layer_parameters(model, true) : 0);
}

std::int64_t expert_parameter_count(const ModelSpec& model) {
  if (!model.moe) return 0;
  const std::int64_t projections = is_gated(model.mlp) ? 3 : 2;
  const std::int64_t f = model.moe->expert_ffn, h = model.hidden;
  const std::int64_t biases = model.mlp_bias ? (projections - 1) * f + h : 0;
  return projections * f * h + biases;
}

std::int64_t active_parameter_count(const ModelSpec& model) {
  if (!model.moe) return parameter_count(model);
  const std::int64_t idle = model.moe->experts - model.moe->experts_per_token;
  return parameter_count(model) - moe_layer_count(model) * idle * expert_parameter_count(model);
}

std::int64_t mtp_parameter_count(const ModelSpec& model) {
  const std::int64_t h = model.hidden;
  const bool sparse = model.moe.has_value();
  return model.mtp_layers == 0
             ? 0
             : model.mtp_layers * (layer_parameters(model, sparse) + 2 * h * h + 3 * h);
}

}  // namespace tessera
