// Linear attention, the kinds of layers and the vision tower of a config.json.
#include <algorithm>
#include <utility>

#include "cost_models/spec/config/model_config.h"

namespace tessera {
namespace {

constexpr std::string_view kFull = "full_attention", kLinear = "linear_attention";

/// Windows, and the layers that see the whole image (Qwen2.5-VL).
void read_windowed_tower(ObjectReader& tower, VisionSpec& vision) {
  vision.patch = 14;
  vision.window = 112;
  tower.optional("window_size", vision.window, kConfigSize);
  vision.full_attention_layers = {7, 15, 23, 31};
  if (tower.has("fullatt_block_indexes")) {
    vision.full_attention_layers.clear();
    tower.list("fullatt_block_indexes", vision.full_attention_layers, kNotNegative);
  }
}

/// Learned positions, and the layers that are merged besides the last (Qwen3-VL; Qwen3.5 has none).
void read_positioned_tower(ObjectReader& tower, bool deepstack, VisionSpec& vision) {
  vision.patch = 16;
  vision.positions = 2304;
  tower.optional("num_position_embeddings", vision.positions, kConfigSize);
  if (!deepstack) return;
  vision.deepstack_layers = {8, 16, 24};
  if (tower.has("deepstack_visual_indexes")) {
    vision.deepstack_layers.clear();
    tower.list("deepstack_visual_indexes", vision.deepstack_layers, kNotNegative);
  }
}

/// Learned positions of one image's patches (GLM-4.1V). Its blocks' MLPs have `output` columns, the
/// merger's `ffn`.
void read_glm_tower(ObjectReader& tower, VisionSpec& vision) {
  vision.patch = 14;
  std::int64_t image = 336;
  tower.optional("image_size", image, kConfigSize);
  tower.optional("patch_size", vision.patch, kConfigSize);
  if (vision.patch < 1) return;
  const std::int64_t side = image / vision.patch;
  vision.positions = side * side;
}

}  // namespace

std::vector<std::string> read_layer_types(ObjectReader& reader, std::int64_t layers,
                                          std::initializer_list<std::string_view> known) {
  std::vector<std::string> types;
  reader.list("layer_types", types, false);
  const auto other = std::find_if(types.begin(), types.end(), [&](const std::string& type) {
    return std::find(known.begin(), known.end(), type) == known.end();
  });
  if (other != types.end()) {
    std::string names;
    for (const std::string_view name : known) {
      names += (names.empty() ? "" : " or ") + std::string(name);
    }
    reader.refuse("layer_types", "'" + *other + "'", names,
                  "layers of another kind are not supported");
    types.clear();
  } else if (!types.empty() && static_cast<std::int64_t>(types.size()) != layers) {
    reader.refuse("layer_types", "one entry per layer");
    types.clear();
  }
  return types;
}

void read_linear(ObjectReader& reader, ModelSpec& spec) {
  LinearAttentionSpec linear{
      .key_heads = 16, .value_heads = 32, .key_dim = 128, .value_dim = 128, .kernel = 4};
  reader.optional("linear_num_key_heads", linear.key_heads, kConfigSize);
  reader.optional("linear_num_value_heads", linear.value_heads, kConfigSize);
  reader.optional("linear_key_head_dim", linear.key_dim, kConfigSize);
  reader.optional("linear_value_head_dim", linear.value_dim, kConfigSize);
  reader.optional("linear_conv_kernel_dim", linear.kernel, kConfigSize);
  if (linear.key_heads > 0 && linear.value_heads % linear.key_heads != 0) {
    reader.refuse("linear_num_value_heads",
                  "a multiple of linear_num_key_heads (" + std::to_string(linear.key_heads) + ")");
  }
  const std::vector<std::string> types = read_layer_types(reader, spec.layers, {kFull, kLinear});
  std::int64_t interval = 4;
  reader.optional("full_attention_interval", interval, kConfigSize);
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
    const bool full = types.empty() ? interval > 0 && (layer + 1) % interval == 0
                                    : types[static_cast<std::size_t>(layer)] == kFull;
    if (full) spec.full_attention_layers.push_back(layer);
  }
  if (spec.full_attention_layers.empty()) {
    reader.refuse("layer_types", "a layer of full attention at least",
                  "models without a KV cache are not supported");
  }
  spec.linear = linear;
}

void read_vision(ObjectReader& reader, const FamilyFacts& facts, ModelSpec& spec) {
  std::optional<ObjectReader> tower = reader.object("vision_config");
  if (!tower) return;
  VisionSpec vision{.channels = 3, .temporal_patch = 2, .merge = 2};
  tower->required("depth", vision.layers, kConfigSize);
  tower->required("hidden_size", vision.hidden, kConfigSize);
  tower->required("intermediate_size", vision.ffn, kConfigSize);
  tower->required("num_heads", vision.heads, kConfigSize);
  tower->required("out_hidden_size", vision.output, kConfigSize);
  switch (facts.vision) {
    case VisionTower::none:
      break;
    case VisionTower::qwen2_5:
      read_windowed_tower(*tower, vision);
      break;
    case VisionTower::qwen3:
      read_positioned_tower(*tower, !facts.linear_attention, vision);
      break;
    case VisionTower::glm:
      read_glm_tower(*tower, vision);
      break;
  }
  const char* const channels = tower->has("in_channels") ? "in_channels" : "in_chans";
  tower->optional(channels, vision.channels, kConfigSize);
  tower->optional("patch_size", vision.patch, kConfigSize);
  tower->optional("temporal_patch_size", vision.temporal_patch, kConfigSize);
  tower->optional("spatial_merge_size", vision.merge, kConfigSize);
  if (vision.heads > 0 && vision.hidden % vision.heads != 0) {
    tower->refuse("hidden_size", "a multiple of num_heads");
  }
  if (vision.output != spec.hidden) {
    tower->refuse("out_hidden_size",
                  "the language model's hidden size (" + std::to_string(spec.hidden) + ")");
  }
  spec.vision = std::move(vision);
}

}  // namespace tessera
