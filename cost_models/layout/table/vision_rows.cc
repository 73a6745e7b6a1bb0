// Vision towers in the parameter table.
#include <array>
#include <utility>

#include "cost_models/layout/table/rows.h"

namespace tessera {

void Rows::vision(const VisionSpec& tower) {
  const size_t first = rows_.size();
  switch (facts_.vision) {
    case VisionTower::none:
      break;
    case VisionTower::qwen2_5:
      windowed_tower(tower);
      break;
    case VisionTower::qwen3:
      positioned_tower(tower);
      break;
    case VisionTower::glm:
      glm_tower(tower);
      break;
    case VisionTower::llama4:
      llama4_tower(tower);
      break;
    case VisionTower::siglip:
      siglip_tower(tower);
      break;
  }
  prefix_.clear();
  for (size_t i = first; i < rows_.size(); ++i) rows_[i].place = StagePlace::embedding;
}

void Rows::linear(const std::string& name, std::int64_t out, std::int64_t in) {
  add(matrix(name + ".weight", out, in));
  add(vector(name + ".bias", out));
}

void Rows::norm_with_bias(const std::string& name, std::int64_t size) {
  add(vector(name + ".weight", size));
  add(vector(name + ".bias", size));
}

// Qwen2.5-VL.
void Rows::windowed_tower(const VisionSpec& tower) {
  const std::string visual(names_.vision);
  const std::int64_t h = tower.hidden;
  prefix_ = visual;
  Parameter patches = matrix("patch_embed.proj.weight", h, tower.channels);
  patches.shape.insert(patches.shape.end(), {tower.temporal_patch, tower.patch, tower.patch});
  add(std::move(patches));
  for (std::int64_t block = 0; block < tower.layers; ++block) {
    prefix_ = visual + "blocks." + std::to_string(block) + ".";
    add(vector("norm1.weight", h));
    add(vector("norm2.weight", h));
    linear("attn.qkv", 3 * h, h);
    linear("attn.proj", h, h);
    linear("mlp.gate_proj", tower.ffn, h);
    linear("mlp.up_proj", tower.ffn, h);
    linear("mlp.down_proj", h, tower.ffn);
  }
  prefix_ = visual + "merger.";
  const std::int64_t merged = h * tower.merge * tower.merge;
  add(vector("ln_q.weight", h));
  linear("mlp.0", merged, merged);
  linear("mlp.2", tower.output, merged);
}

// Qwen3-VL and Qwen3.5. The mergers of its deeper layers norm what they have merged.
void Rows::positioned_tower(const VisionSpec& tower) {
  const std::string visual(names_.vision);
  const std::int64_t h = tower.hidden, merged = h * tower.merge * tower.merge;
  prefix_ = visual;
  Parameter patches = matrix("patch_embed.proj.weight", h, tower.channels);
  patches.shape.insert(patches.shape.end(), {tower.temporal_patch, tower.patch, tower.patch});
  add(std::move(patches));
  add(vector("patch_embed.proj.bias", h));
  add(matrix("pos_embed.weight", tower.positions, h));
  for (std::int64_t block = 0; block < tower.layers; ++block) {
    prefix_ = visual + "blocks." + std::to_string(block) + ".";
    norm_with_bias("norm1", h);
    norm_with_bias("norm2", h);
    linear("attn.qkv", 3 * h, h);
    linear("attn.proj", h, h);
    linear("mlp.linear_fc1", tower.ffn, h);
    linear("mlp.linear_fc2", h, tower.ffn);
  }
  const auto merger = [&](const std::string& name, std::int64_t normed) {
    prefix_ = visual + name;
    norm_with_bias("norm", normed);
    linear("linear_fc1", merged, merged);
    linear("linear_fc2", tower.output, merged);
  };
  merger("merger.", h);
  for (std::size_t i = 0; i < tower.deepstack_layers.size(); ++i) {
    merger("deepstack_merger_list." + std::to_string(i) + ".", merged);
  }
}

// GLM-4.1V: a convolution merges patches before the merger's MLP; its blocks have no biases.
void Rows::glm_tower(const VisionSpec& tower) {
  const std::string visual(names_.vision);
  const std::int64_t h = tower.hidden, out = tower.output;
  const auto gated = [&](const std::string& name, std::int64_t columns, std::int64_t width) {
    add(matrix(name + "gate_proj.weight", columns, width));
    add(matrix(name + "up_proj.weight", columns, width));
    add(matrix(name + "down_proj.weight", width, columns));
  };
  prefix_ = visual;
  add(matrix("embeddings.position_embedding.weight", tower.positions, h));
  Parameter patches = matrix("patch_embed.proj.weight", h, tower.channels);
  patches.shape.insert(patches.shape.end(), {tower.temporal_patch, tower.patch, tower.patch});
  add(std::move(patches));
  add(vector("patch_embed.proj.bias", h));
  add(vector("post_conv_layernorm.weight", h));
  for (std::int64_t block = 0; block < tower.layers; ++block) {
    prefix_ = visual + "blocks." + std::to_string(block) + ".";
    add(vector("norm1.weight", h));
    add(vector("norm2.weight", h));
    add(matrix("attn.qkv.weight", 3 * h, h));
    add(matrix("attn.proj.weight", h, h));
    gated("mlp.", out, h);
  }
  prefix_ = visual;
  add(vector("post_layernorm.weight", h));
  Parameter merge = matrix("downsample.weight", out, h);
  merge.shape.insert(merge.shape.end(), {tower.merge, tower.merge});
  add(std::move(merge));
  add(vector("downsample.bias", out));
  add(matrix("merger.proj.weight", out, out));
  norm_with_bias("merger.post_projection_norm", out);
  gated("merger.", tower.ffn, out);
}

// Blocks of plain attention and an MLP of two layers, norms with biases before both.
void Rows::plain_blocks(const VisionSpec& tower, const std::string& prefix, const char* output,
                        const std::array<const char*, 2>& norms) {
  const std::int64_t h = tower.hidden;
  for (std::int64_t block = 0; block < tower.layers; ++block) {
    prefix_ = prefix + std::to_string(block) + ".";
    for (const char* const name : {"q_proj", "k_proj", "v_proj", output}) {
      linear(std::string("self_attn.") + name, h, h);
    }
    linear("mlp.fc1", tower.ffn, h);
    linear("mlp.fc2", h, tower.ffn);
    for (const char* const name : norms) norm_with_bias(name, h);
  }
}

// Llama 4: patches are unfolded, an MLP of the projector's width merges them.
void Rows::llama4_tower(const VisionSpec& tower) {
  const std::string visual(names_.vision);
  const std::int64_t h = tower.hidden, width = tower.projector;
  prefix_ = visual;
  add(vector("class_embedding", h));
  add(matrix("positional_embedding_vlm", tower.positions, h));
  add(matrix("patch_embedding.linear.weight", h, tower.channels * tower.patch * tower.patch));
  norm_with_bias("layernorm_pre", h);
  norm_with_bias("layernorm_post", h);
  plain_blocks(tower, visual + "model.layers.", "o_proj",
               {"input_layernorm", "post_attention_layernorm"});
  prefix_ = visual + "vision_adapter.mlp.";
  add(matrix("fc1.weight", width, tower.ffn));
  add(matrix("fc2.weight", width, width));
  prefix_ = "multi_modal_projector.";
  add(matrix("linear_1.weight", tower.output, width));
}

// Gemma 3: SigLIP's tower, and a product behind the mean of patches.
void Rows::siglip_tower(const VisionSpec& tower) {
  const std::string visual(names_.vision);
  const std::int64_t h = tower.hidden;
  prefix_ = visual + "embeddings.";
  Parameter patches = matrix("patch_embedding.weight", h, tower.channels);
  patches.shape.insert(patches.shape.end(), {tower.patch, tower.patch});
  add(std::move(patches));
  add(vector("patch_embedding.bias", h));
  add(matrix("position_embedding.weight", tower.positions, h));
  plain_blocks(tower, visual + "encoder.layers.", "out_proj", {"layer_norm1", "layer_norm2"});
  prefix_ = visual;
  norm_with_bias("post_layernorm", h);
  prefix_ = "multi_modal_projector.";
  add(matrix("mm_input_projection_weight", h, tower.output));
  add(vector("mm_soft_emb_norm.weight", h));
}

}  // namespace tessera
