// The vision tower of a config.json.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "cost_models/spec/config/model_config.h"

namespace tessera {
namespace {

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

/// Sizes under the names of Qwen's towers and GLM's.
void read_nested_tower(ObjectReader& tower, const FamilyFacts& facts, VisionSpec& vision) {
  vision.temporal_patch = 2;
  vision.merge = 2;
  tower.required("depth", vision.layers, kConfigSize);
  tower.required("num_heads", vision.heads, kConfigSize);
  tower.required("out_hidden_size", vision.output, kConfigSize);
  if (facts.vision == VisionTower::qwen2_5) read_windowed_tower(tower, vision);
  if (facts.vision == VisionTower::qwen3) {
    read_positioned_tower(tower, !facts.linear_attention, vision);
  }
  if (facts.vision == VisionTower::glm) read_glm_tower(tower, vision);
  const char* const channels = tower.has("in_channels") ? "in_channels" : "in_chans";
  tower.optional(channels, vision.channels, kConfigSize);
  tower.optional("patch_size", vision.patch, kConfigSize);
  tower.optional("temporal_patch_size", vision.temporal_patch, kConfigSize);
  tower.optional("spatial_merge_size", vision.merge, kConfigSize);
}

/// Sizes under the names of transformers' single towers; returns the patches of an image's side.
std::int64_t read_single_tower(ObjectReader& tower, std::int64_t image, VisionSpec& vision) {
  vision.temporal_patch = 1;
  tower.required("num_hidden_layers", vision.layers, kConfigSize);
  tower.required("num_attention_heads", vision.heads, kConfigSize);
  tower.optional("num_channels", vision.channels, kConfigSize);
  tower.optional("patch_size", vision.patch, kConfigSize);
  tower.optional("image_size", image, kConfigSize);
  return vision.patch > 0 ? image / vision.patch : 0;
}

/// Llama 4: a class token beside an image's patches, and an MLP that merges these.
void read_llama4_tower(ObjectReader& tower, VisionSpec& vision) {
  vision.patch = 14;
  const std::int64_t side = read_single_tower(tower, 448, vision);
  vision.positions = side * side + 1;
  double ratio = 0.5;
  tower.optional("pixel_shuffle_ratio", ratio, Real{.least = 0, .most = 1, .above = true});
  vision.merge = std::llround(1 / ratio);
  std::int64_t input = 4096, given = 7680;
  vision.projector = 4096;
  tower.optional("projector_input_dim", input, kConfigSize);
  tower.optional("projector_output_dim", vision.projector, kConfigSize);
  tower.optional("vision_output_dim", given, kConfigSize);
  if (input != vision.projector) {
    tower.refuse("projector_input_dim",
                 "projector_output_dim (" + std::to_string(vision.projector) + ")");
  }
  if (given != vision.projector) {
    tower.refuse("vision_output_dim",
                 "projector_output_dim (" + std::to_string(vision.projector) + ")");
  }
  if (vision.hidden * vision.merge * vision.merge != vision.ffn) {
    tower.refuse("intermediate_size",
                 "the elements of the patches that are merged (" +
                     std::to_string(vision.hidden * vision.merge * vision.merge) + ")");
  }
}

/// Gemma 3: the mean of patches becomes one of mm_tokens_per_image.
void read_siglip_tower(ObjectReader& tower, std::int64_t tokens, VisionSpec& vision) {
  vision.patch = 16;
  const std::int64_t side = read_single_tower(tower, 224, vision);
  vision.positions = side * side;
  const auto merged = static_cast<std::int64_t>(std::sqrt(static_cast<double>(tokens)));
  vision.merge = std::max<std::int64_t>(1, merged > 0 ? side / merged : 1);
  bool pooled = true;  // SiglipVisionConfig's default
  tower.optional("vision_use_head", pooled);
  if (pooled) tower.refuse("vision_use_head", "false, as Gemma 3 was published");
}

}  // namespace

void read_vision(ObjectReader& reader, const FamilyFacts& facts, ModelSpec& spec) {
  std::optional<ObjectReader> tower = reader.object("vision_config");
  if (!tower) return;
  VisionSpec vision{.channels = 3, .output = spec.hidden};
  tower->required("hidden_size", vision.hidden, kConfigSize);
  tower->required("intermediate_size", vision.ffn, kConfigSize);
  if (facts.vision == VisionTower::llama4) {
    read_llama4_tower(*tower, vision);
  } else if (facts.vision == VisionTower::siglip) {
    std::int64_t tokens = 256;
    reader.optional("mm_tokens_per_image", tokens, kConfigSize);
    read_siglip_tower(*tower, tokens, vision);
  } else {
    read_nested_tower(*tower, facts, vision);
  }
  if (vision.heads > 0 && vision.hidden % vision.heads != 0) {
    tower->refuse("hidden_size", "a multiple of the heads (" + std::to_string(vision.heads) + ")");
  }
  if (vision.output != spec.hidden) {
    tower->refuse("out_hidden_size",
                  "the language model's hidden size (" + std::to_string(spec.hidden) + ")");
  }
  spec.vision = std::move(vision);
}

}  // namespace tessera
