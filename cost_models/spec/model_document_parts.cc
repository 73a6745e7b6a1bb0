// Experts, latent attention and vision tower as plan.json writes them out.
#include <algorithm>
#include <string>
#include <utility>

#include "cost_models/spec/model_document.h"

namespace tessera {
namespace {

constexpr Whole kSize{.least = 1, .most = std::int64_t{1} << 40};
constexpr Whole kSizeOrNone{.least = 0, .most = std::int64_t{1} << 40};
constexpr Whole kCount{.least = 1, .most = 1 << 16};

void ascending(ObjectReader& reader, std::string_view key, const std::vector<std::int64_t>& list) {
  if (std::adjacent_find(list.begin(), list.end(), std::greater_equal<>()) != list.end()) {
    reader.refuse(key, "layers in ascending order, each once");
  }
}

MoeSpec moe_from(ObjectReader& reader, const ModelSpec& model) {
  MoeSpec moe;
  reader.required("experts", moe.experts, kCount);
  reader.required("experts_per_token", moe.experts_per_token,
                  Whole{.least = 1, .most = std::max<std::int64_t>(1, moe.experts)});
  reader.required("expert_ffn", moe.expert_ffn, kSize);
  reader.required("shared_ffn", moe.shared_ffn, kSizeOrNone);
  reader.required("shared_gate", moe.shared_gate);
  reader.list("dense_layers", moe.dense_layers, Whole{.least = 0, .most = model.layers - 1});
  ascending(reader, "dense_layers", moe.dense_layers);
  reader.required("score", moe.score, kEveryRouterScore);
  reader.required("router_bias", moe.router_bias);
  reader.required("correction_bias", moe.correction_bias);
  reader.required("normalised", moe.normalised);
  reader.required("scale", moe.scale, kAboveZero);
  reader.required("groups", moe.groups, kCount);
  reader.required("groups_per_token", moe.groups_per_token,
                  Whole{.least = 1, .most = std::max<std::int64_t>(1, moe.groups)});
  reader.refuse_unknown_keys();
  return moe;
}

MlaSpec mla_from(ObjectReader& reader) {
  MlaSpec mla;
  reader.required("q_lora_rank", mla.q_lora_rank, kSizeOrNone);
  reader.required("kv_lora_rank", mla.kv_lora_rank, kSize);
  reader.required("qk_nope_head_dim", mla.qk_nope_head_dim, kSize);
  reader.required("qk_rope_head_dim", mla.qk_rope_head_dim, kSize);
  reader.required("v_head_dim", mla.v_head_dim, kSize);
  reader.refuse_unknown_keys();
  return mla;
}

VisionSpec vision_from(ObjectReader& reader) {
  VisionSpec vision;
  reader.required("layers", vision.layers, kCount);
  reader.required("hidden", vision.hidden, kSize);
  reader.required("heads", vision.heads, kSize);
  reader.required("ffn", vision.ffn, kSize);
  reader.required("channels", vision.channels, kSize);
  reader.required("patch", vision.patch, kSize);
  reader.required("temporal_patch", vision.temporal_patch, kSize);
  reader.required("merge", vision.merge, kSize);
  reader.required("output", vision.output, kSize);
  reader.required("window", vision.window, kSizeOrNone);
  reader.list("full_attention_layers", vision.full_attention_layers, kNotNegative);
  reader.refuse_unknown_keys();
  return vision;
}

Node to_node(const MoeSpec& moe) {
  Node node = map_node();
  add(node, "experts", node_of(moe.experts));
  add(node, "experts_per_token", node_of(moe.experts_per_token));
  add(node, "expert_ffn", node_of(moe.expert_ffn));
  add(node, "shared_ffn", node_of(moe.shared_ffn));
  add(node, "shared_gate", node_of(moe.shared_gate));
  add(node, "dense_layers", list_of(moe.dense_layers));
  add(node, "score", node_of(name_of(moe.score)));
  add(node, "router_bias", node_of(moe.router_bias));
  add(node, "correction_bias", node_of(moe.correction_bias));
  add(node, "normalised", node_of(moe.normalised));
  add(node, "scale", node_of(moe.scale));
  add(node, "groups", node_of(moe.groups));
  add(node, "groups_per_token", node_of(moe.groups_per_token));
  return node;
}

Node to_node(const MlaSpec& mla) {
  Node node = map_node();
  add(node, "q_lora_rank", node_of(mla.q_lora_rank));
  add(node, "kv_lora_rank", node_of(mla.kv_lora_rank));
  add(node, "qk_nope_head_dim", node_of(mla.qk_nope_head_dim));
  add(node, "qk_rope_head_dim", node_of(mla.qk_rope_head_dim));
  add(node, "v_head_dim", node_of(mla.v_head_dim));
  return node;
}

Node to_node(const VisionSpec& vision) {
  Node node = map_node();
  add(node, "layers", node_of(vision.layers));
  add(node, "hidden", node_of(vision.hidden));
  add(node, "heads", node_of(vision.heads));
  add(node, "ffn", node_of(vision.ffn));
  add(node, "channels", node_of(vision.channels));
  add(node, "patch", node_of(vision.patch));
  add(node, "temporal_patch", node_of(vision.temporal_patch));
  add(node, "merge", node_of(vision.merge));
  add(node, "output", node_of(vision.output));
  add(node, "window", node_of(vision.window));
  add(node, "full_attention_layers", list_of(vision.full_attention_layers));
  return node;
}

bool has_experts(ModelFamily family) {
  return family == ModelFamily::mixtral || family == ModelFamily::qwen2_moe ||
         family == ModelFamily::qwen3_moe || family == ModelFamily::deepseek_v2 ||
         family == ModelFamily::deepseek_v3 || family == ModelFamily::gpt_oss;
}

bool has_latent_attention(ModelFamily family) {
  return family == ModelFamily::deepseek_v2 || family == ModelFamily::deepseek_v3;
}

/// The key itself must be there; null where the model has no such part.
std::optional<ObjectReader> part(ObjectReader& reader, std::string_view key, bool expected,
                                 ModelFamily family) {
  std::optional<ObjectReader> inner = reader.object(key, false);
  const Node* node = reader.find(key);
  const bool none = node == nullptr || node->is(Node::Kind::null);
  const std::string name(name_of(family));
  if (node == nullptr) reader.refuse(key, "a map, or null where the model has none");
  if (none && expected) reader.refuse(key, "a map, as " + name + " has");
  if (!none && !expected) reader.refuse(key, "null: " + name + " has no such part");
  return inner;
}

}  // namespace

void read_parts(ObjectReader& reader, ModelSpec& model) {
  const ModelFamily family = model.family;
  if (auto moe = part(reader, "moe", has_experts(family), family)) {
    model.moe = moe_from(*moe, model);
  }
  if (auto mla = part(reader, "mla", has_latent_attention(family), family)) {
    model.mla = mla_from(*mla);
  }
  if (auto vision = part(reader, "vision", family == ModelFamily::qwen2_5_vl, family)) {
    model.vision = vision_from(*vision);
  }
}

void add_parts(Node& node, const ModelSpec& model) {
  add(node, "moe", model.moe ? to_node(*model.moe) : Node{});
  add(node, "mla", model.mla ? to_node(*model.mla) : Node{});
  add(node, "vision", model.vision ? to_node(*model.vision) : Node{});
}

Node list_of(const std::vector<std::int64_t>& values) {
  Node list = list_node();
  for (const std::int64_t value : values) list.items.push_back(node_of(value));
  return list;
}

}  // namespace tessera
