// Names that plan.json writes for what a ModelSpec enumerates, and facts of its single layers.
#include "cost_models/spec/model_spec.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tessera {
namespace {

constexpr std::array<std::string_view, 2> kHeads{"language_model", "value"};
constexpr std::array<std::string_view, 4> kScalings{"none", "linear", "llama3", "yarn"};
constexpr std::array<std::string_view, kEveryNorm.size()> kNorms{"rms", "layer_norm",
                                                                 "layer_norm_1p"};
constexpr std::array<std::string_view, kEveryMlp.size()> kMlps{"swiglu", "clamped_swiglu", "gelu",
                                                               "squared_relu"};
constexpr std::array<std::string_view, 2> kScores{"softmax", "sigmoid"};

}  // namespace

std::string_view name_of(ModelHead head) { return kHeads[static_cast<std::size_t>(head)]; }
std::string_view name_of(RopeScalingKind kind) { return kScalings[static_cast<std::size_t>(kind)]; }
std::string_view name_of(NormKind kind) { return kNorms[static_cast<std::size_t>(kind)]; }
std::string_view name_of(MlpKind kind) { return kMlps[static_cast<std::size_t>(kind)]; }
std::string_view name_of(RouterScore score) { return kScores[static_cast<std::size_t>(score)]; }

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
      break;
  }
  return model.max_positions;
}

bool is_moe_layer(const ModelSpec& model, std::int64_t layer) {
  return model.moe &&
         !std::binary_search(model.moe->dense_layers.begin(), model.moe->dense_layers.end(), layer);
}

std::int64_t moe_layer_count(const ModelSpec& model) {
  return model.moe ? model.layers - static_cast<std::int64_t>(model.moe->dense_layers.size()) : 0;
}

std::int64_t window_of_layer(const ModelSpec& model, std::int64_t layer) {
  const auto& full = model.full_attention_layers;
  return std::binary_search(full.begin(), full.end(), layer) ? 0 : model.sliding_window;
}

std::int64_t value_head_dim(const ModelSpec& model) {
  return model.mla ? model.mla->v_head_dim : model.head_dim;
}

}  // namespace tessera
