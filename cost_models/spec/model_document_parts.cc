// Experts, latent attention and vision tower as plan.json writes them out.
#include <algorithm>
#include <concepts>
#include <string>
#include <type_traits>
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

// fields(visitor, part) names every member of a part once, with its range; Reader and Writer are
// the two visitors, so that what is written is what is read.

class Reader {
 public:
  explicit Reader(ObjectReader& reader) : reader_(reader) {}

  template <class T, class... Range>
  void field(std::string_view key, T& value, const Range&... range) {
    reader_.required(key, value, range...);
  }
  void list(std::string_view key, std::vector<std::int64_t>& values, Whole range) {
    reader_.list(key, values, range);
  }
  void ascending_list(std::string_view key, std::vector<std::int64_t>& values, Whole range) {
    reader_.list(key, values, range);
    ascending(reader_, key, values);
  }

 private:
  ObjectReader& reader_;
};

class Writer {
 public:
  Node node = map_node();

  template <class T, class... Range>
  void field(std::string_view key, const T& value, const Range&...) {
    if constexpr (std::is_enum_v<T>) {
      add(node, key, node_of(name_of(value)));
    } else {
      add(node, key, node_of(value));
    }
  }
  void list(std::string_view key, const std::vector<std::int64_t>& values, Whole) {
    add(node, key, list_of(values));
  }
  void ascending_list(std::string_view key, const std::vector<std::int64_t>& values, Whole range) {
    list(key, values, range);
  }
};

Whole up_to(std::int64_t most) { return {.least = 1, .most = std::max<std::int64_t>(1, most)}; }

template <class V, class Part>
  requires std::same_as<std::remove_const_t<Part>, MoeSpec>
void fields(V& v, Part& moe, const ModelSpec& model) {
  v.field("experts", moe.experts, kCount);
  v.field("experts_per_token", moe.experts_per_token, up_to(moe.experts));
  v.field("expert_ffn", moe.expert_ffn, kSize);
  v.field("shared_ffn", moe.shared_ffn, kSizeOrNone);
  v.field("shared_gate", moe.shared_gate);
  v.ascending_list("dense_layers", moe.dense_layers, Whole{.least = 0, .most = model.layers - 1});
  v.field("score", moe.score, kEveryRouterScore);
  v.field("router_bias", moe.router_bias);
  v.field("correction_bias", moe.correction_bias);
  v.field("normalised", moe.normalised);
  v.field("scale", moe.scale, kAboveZero);
  v.field("groups", moe.groups, kCount);
  v.field("groups_per_token", moe.groups_per_token, up_to(moe.groups));
}

template <class V, class Part>
  requires std::same_as<std::remove_const_t<Part>, MlaSpec>
void fields(V& v, Part& mla, const ModelSpec&) {
  v.field("q_lora_rank", mla.q_lora_rank, kSizeOrNone);
  v.field("kv_lora_rank", mla.kv_lora_rank, kSize);
  v.field("qk_nope_head_dim", mla.qk_nope_head_dim, kSize);
  v.field("qk_rope_head_dim", mla.qk_rope_head_dim, kSize);
  v.field("v_head_dim", mla.v_head_dim, kSize);
}

template <class V, class Part>
  requires std::same_as<std::remove_const_t<Part>, VisionSpec>
void fields(V& v, Part& vision, const ModelSpec&) {
  v.field("layers", vision.layers, kCount);
  v.field("hidden", vision.hidden, kSize);
  v.field("heads", vision.heads, kSize);
  v.field("ffn", vision.ffn, kSize);
  v.field("channels", vision.channels, kSize);
  v.field("patch", vision.patch, kSize);
  v.field("temporal_patch", vision.temporal_patch, kSize);
  v.field("merge", vision.merge, kSize);
  v.field("output", vision.output, kSize);
  v.field("window", vision.window, kSizeOrNone);
  v.list("full_attention_layers", vision.full_attention_layers, kNotNegative);
}

template <class Part>
Part part_from(ObjectReader& inner, const ModelSpec& model) {
  Part part;
  Reader reader(inner);
  fields(reader, part, model);
  inner.refuse_unknown_keys();
  return part;
}

template <class Part>
Node part_node(const std::optional<Part>& part, const ModelSpec& model) {
  if (!part) return {};
  Writer writer;
  fields(writer, *part, model);
  return std::move(writer.node);
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
    model.moe = part_from<MoeSpec>(*moe, model);
  }
  if (auto mla = part(reader, "mla", has_latent_attention(family), family)) {
    model.mla = part_from<MlaSpec>(*mla, model);
  }
  if (auto vision = part(reader, "vision", family == ModelFamily::qwen2_5_vl, family)) {
    model.vision = part_from<VisionSpec>(*vision, model);
  }
}

void add_parts(Node& node, const ModelSpec& model) {
  add(node, "moe", part_node(model.moe, model));
  add(node, "mla", part_node(model.mla, model));
  add(node, "vision", part_node(model.vision, model));
}

Node list_of(const std::vector<std::int64_t>& values) {
  Node list = list_node();
  for (const std::int64_t value : values) list.items.push_back(node_of(value));
  return list;
}

}  // namespace tessera
