// Names that plan.json writes for what a ModelSpec enumerates, and facts of its single layers.
#include "cost_models/spec/model_spec.h"

#include <algorithm>
#include <cmath>

#include "cost_models/spec/enum_names.h"
#include "cost_models/spec/layer_kind.h"

namespace tessera {
namespace {

constexpr auto kHeads = enum_names<ModelHead>(
    {{ModelHead::language_model, "language_model"}, {ModelHead::value, "value"}});
constexpr auto kMtpUses = enum_names<MtpUse>(
    {{MtpUse::left_out, "left_out"}, {MtpUse::held, "held"}, {MtpUse::trained, "trained"}});
constexpr auto kScalings = enum_names<RopeScalingKind>({{RopeScalingKind::none, "none"},
                                                        {RopeScalingKind::linear, "linear"},
                                                        {RopeScalingKind::llama3, "llama3"},
                                                        {RopeScalingKind::yarn, "yarn"},
                                                        {RopeScalingKind::longrope, "longrope"}});
constexpr auto kNorms = enum_names<NormKind>({{NormKind::rms, "rms"},
                                              {NormKind::layer_norm, "layer_norm"},
                                              {NormKind::layer_norm_1p, "layer_norm_1p"}});
constexpr auto kMlps = enum_names<MlpKind>({{MlpKind::swiglu, "swiglu"},
                                            {MlpKind::clamped_swiglu, "clamped_swiglu"},
                                            {MlpKind::gelu, "gelu"},
                                            {MlpKind::squared_relu, "squared_relu"},
                                            {MlpKind::geglu, "geglu"}});
constexpr auto kScores = enum_names<RouterScore>({{RouterScore::softmax, "softmax"},
                                                  {RouterScore::sigmoid, "sigmoid"},
                                                  {RouterScore::sqrt_softplus, "sqrtsoftplus"}});
constexpr auto kBlocks = enum_names<LayerBlock>({{LayerBlock::attention, "attention"},
                                                 {LayerBlock::state_space, "state_space"},
                                                 {LayerBlock::mlp, "mlp"},
                                                 {LayerBlock::experts, "experts"}});

}  // namespace

std::string_view name_of(ModelHead head) { return kHeads[head]; }
std::string_view name_of(MtpUse use) { return kMtpUses[use]; }
std::optional<MtpUse> mtp_use_from(std::string_view name) { return kMtpUses.find(name); }
std::string_view name_of(RopeScalingKind kind) { return kScalings[kind]; }
std::string_view name_of(NormKind kind) { return kNorms[kind]; }
std::string_view name_of(MlpKind kind) { return kMlps[kind]; }
std::string_view name_of(RouterScore score) { return kScores[score]; }
std::string_view name_of(LayerBlock block) { return kBlocks[block]; }

std::int64_t context_length(const ModelSpec& model) {
  const auto scaled = [&](std::int64_t positions) {
    return static_cast<std::int64_t>(
        std::llround(static_cast<double>(positions) * model.rope.factor));
  };
  switch (model.rope.kind) {
    case RopeScalingKind::linear:
      return scaled(model.max_positions);
    case RopeScalingKind::yarn:
      return std::max(model.max_positions, scaled(model.rope.original_max_position_embeddings));
    case RopeScalingKind::none:
    case RopeScalingKind::llama3:
    case RopeScalingKind::longrope:
      break;
  }
  return model.max_positions;
}

bool is_moe_layer(const ModelSpec& model, std::int64_t layer) {
  if (!model.blocks.empty()) {
    return model.blocks[static_cast<std::size_t>(layer)] == LayerBlock::experts;
  }
  return model.moe &&
         !std::binary_search(model.moe->dense_layers.begin(), model.moe->dense_layers.end(), layer);
}

std::int64_t block_count(const ModelSpec& model, LayerBlock block) {
  return std::count(model.blocks.begin(), model.blocks.end(), block);
}

std::int64_t held_mtp_layers(const ModelSpec& model) {
  return model.mtp == MtpUse::left_out ? 0 : model.mtp_layers;
}

std::int64_t run_mtp_layers(const ModelSpec& model) {
  return model.mtp == MtpUse::trained ? model.mtp_layers : 0;
}

std::int64_t moe_layer_count(const ModelSpec& model) {
  if (!model.blocks.empty()) return block_count(model, LayerBlock::experts);
  return model.moe ? model.layers - static_cast<std::int64_t>(model.moe->dense_layers.size()) : 0;
}

bool is_linear_layer(const ModelSpec& model, std::int64_t layer) {
  const auto& full = model.full_attention_layers;
  return model.linear && !std::binary_search(full.begin(), full.end(), layer);
}

LayerKind kind_of_block(LayerBlock block) {
  switch (block) {
    case LayerBlock::attention:
      return LayerKind::attention_alone;
    case LayerBlock::state_space:
      return LayerKind::state_space_alone;
    case LayerBlock::mlp:
      return LayerKind::mlp_alone;
    case LayerBlock::experts:
      break;
  }
  return LayerKind::experts_alone;
}

namespace {

bool among(const std::vector<std::int64_t>& layers, std::int64_t layer) {
  return std::binary_search(layers.begin(), layers.end(), layer);
}

// Of a model whose every layer has experts.
LayerKind compressed_kind(const ModelSpec& model, std::int64_t layer) {
  const bool hash = model.moe && among(model.moe->hash_layers, layer);
  switch (entries_of_layer(model, layer)) {
    case LayerEntries::chosen:
      return hash ? LayerKind::chosen_hash : LayerKind::chosen_sparse;
    case LayerEntries::all:
      return hash ? LayerKind::all_hash : LayerKind::all_sparse;
    case LayerEntries::none:
      break;
  }
  return hash ? LayerKind::window_hash : LayerKind::window_sparse;
}

}  // namespace

LayerEntries entries_of_layer(const ModelSpec& model, std::int64_t layer) {
  if (!model.compressed) return LayerEntries::none;
  if (among(model.compressed->chosen_layers, layer)) return LayerEntries::chosen;
  return among(model.compressed->all_layers, layer) ? LayerEntries::all : LayerEntries::none;
}

LayerKind kind_of_layer(const ModelSpec& model, std::int64_t layer) {
  if (!model.blocks.empty()) {
    return kind_of_block(model.blocks[static_cast<std::size_t>(layer)]);
  }
  const bool sparse = is_moe_layer(model, layer);
  if (model.compressed) return compressed_kind(model, layer);
  if (model.indexer && among(model.indexer->shared_layers, layer)) {
    return sparse ? LayerKind::shared_choice_sparse : LayerKind::shared_choice_dense;
  }
  if (is_linear_layer(model, layer)) {
    return sparse ? LayerKind::linear_sparse : LayerKind::linear_dense;
  }
  return sparse ? LayerKind::sparse : LayerKind::dense;
}

std::vector<LayerKind> mtp_kinds(const ModelSpec& model) {
  if (!model.blocks.empty()) {
    return {LayerKind::attention_alone,
            model.moe ? LayerKind::experts_alone : LayerKind::mlp_alone};
  }
  if (model.compressed) return {LayerKind::window_sparse};
  return {model.moe ? LayerKind::sparse : LayerKind::dense};
}

LayerCounts mtp_counts(const ModelSpec& model) {
  LayerCounts counts{};
  for (const LayerKind kind : mtp_kinds(model)) {
    counts[static_cast<std::size_t>(kind)] = run_mtp_layers(model);
  }
  return counts;
}

std::int64_t attention_layer_count(const ModelSpec& model) {
  if (!model.blocks.empty()) return block_count(model, LayerBlock::attention);
  return model.linear ? static_cast<std::int64_t>(model.full_attention_layers.size())
                      : model.layers;
}

std::int64_t window_of_layer(const ModelSpec& model, std::int64_t layer) {
  const auto& full = model.full_attention_layers;
  return std::binary_search(full.begin(), full.end(), layer) ? 0 : model.sliding_window;
}

std::int64_t stream_width(const ModelSpec& model) {
  return model.hidden * (model.hyper ? model.hyper->streams : 1);
}

std::int64_t value_head_dim(const ModelSpec& model) {
  return model.mla ? model.mla->v_head_dim : model.head_dim;
}

}  // namespace tessera
