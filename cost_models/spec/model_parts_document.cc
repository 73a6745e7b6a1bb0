// The parts of a ModelSpec that some families have, as plan.json writes them out.
#include <algorithm>
#include <concepts>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include "cost_models/spec/families.h"
#include "cost_models/spec/spec_document.h"

namespace tessera {

Node list_of(const std::vector<std::int64_t>& layers) {
  Node list = list_node();
  for (const std::int64_t layer : layers) list.items.push_back(node_of(layer));
  return list;
}

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
  // What plans of former versions do not state, which have none of it.
  void later_field(std::string_view key, std::int64_t& value, Whole range) {
    reader_.optional(key, value, range);
  }
  void later_list(std::string_view key, std::vector<std::int64_t>& values, Whole range) {
    reader_.list(key, values, range, false);
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
  void later_field(std::string_view key, std::int64_t value, Whole range) {
    field(key, value, range);
  }
  void later_list(std::string_view key, const std::vector<std::int64_t>& values, Whole range) {
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
  v.later_field("latent", moe.latent, kSizeOrNone);
  v.later_list("hash_layers", moe.hash_layers, Whole{.least = 0, .most = model.layers - 1});
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
  v.later_field("positions", vision.positions, kSizeOrNone);
  v.later_list("deepstack_layers", vision.deepstack_layers, kNotNegative);
  v.later_field("projector", vision.projector, kSizeOrNone);
}

template <class V, class Part>
  requires std::same_as<std::remove_const_t<Part>, LinearAttentionSpec>
void fields(V& v, Part& linear, const ModelSpec&) {
  v.field("key_heads", linear.key_heads, kSize);
  v.field("value_heads", linear.value_heads, kSize);
  v.field("key_dim", linear.key_dim, kSize);
  v.field("value_dim", linear.value_dim, kSize);
  v.field("kernel", linear.kernel, kSizeOrNone);
  v.later_field("block", linear.block, kSizeOrNone);
}

template <class V, class Part>
  requires std::same_as<std::remove_const_t<Part>, IndexerSpec>
void fields(V& v, Part& indexer, const ModelSpec& model) {
  v.field("heads", indexer.heads, kSize);
  v.field("head_dim", indexer.head_dim, kSize);
  v.field("chosen", indexer.chosen, kSize);
  v.later_list("shared_layers", indexer.shared_layers, Whole{.least = 1, .most = model.layers - 1});
}

template <class V, class Part>
  requires std::same_as<std::remove_const_t<Part>, CompressedAttentionSpec>
void fields(V& v, Part& attention, const ModelSpec& model) {
  const Whole layers{.least = 0, .most = model.layers - 1};
  v.field("query_rank", attention.query_rank, kSize);
  v.field("rope_dim", attention.rope_dim, kSize);
  v.field("groups", attention.groups, kSize);
  v.field("group_rank", attention.group_rank, kSize);
  v.field("window", attention.window, kSize);
  v.field("chosen_rate", attention.chosen_rate, kSize);
  v.field("all_rate", attention.all_rate, kSize);
  v.ascending_list("chosen_layers", attention.chosen_layers, layers);
  v.ascending_list("all_layers", attention.all_layers, layers);
}

template <class V, class Part>
  requires std::same_as<std::remove_const_t<Part>, HyperConnectionSpec>
void fields(V& v, Part& hyper, const ModelSpec&) {
  v.field("streams", hyper.streams, kSize);
  v.field("iterations", hyper.iterations, kSize);
}

template <class V, class Part>
  requires std::same_as<std::remove_const_t<Part>, StateSpaceSpec>
void fields(V& v, Part& mixer, const ModelSpec&) {
  v.field("heads", mixer.heads, kSize);
  v.field("head_dim", mixer.head_dim, kSize);
  v.field("groups", mixer.groups, kSize);
  v.field("state", mixer.state, kSize);
  v.field("kernel", mixer.kernel, kSize);
  v.field("conv_bias", mixer.conv_bias);
  v.field("chunk", mixer.chunk, kSize);
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

/// The key itself must be there, but for a `later` one; null where the model has no such part.
std::optional<ObjectReader> part(ObjectReader& reader, std::string_view key, bool expected,
                                 const FamilyFacts& facts, bool later = false) {
  std::optional<ObjectReader> inner = reader.object(key, false);
  const Node* node = reader.find(key);
  const bool none = node == nullptr || node->is(Node::Kind::null);
  const std::string name(facts.name);
  if (node == nullptr && !later) reader.refuse(key, "a map, or null where the model has none");
  if (none && expected) reader.refuse(key, "a map, as " + name + " has");
  if (!none && !expected) reader.refuse(key, "null: " + name + " has no such part");
  return inner;
}

/// "blocks", of a model whose layers are one block each.
void read_blocks(ObjectReader& reader, ModelSpec& model, const FamilyFacts& facts) {
  std::vector<std::string> words;
  const bool expected = facts.keys == ConfigKeys::blocks;
  reader.list("blocks", words, expected);
  if (!expected && !words.empty()) reader.refuse("blocks", "no such key, as of this family");
  for (const std::string& word : words) {
    const auto* const found =
        std::find_if(kEveryLayerBlock.begin(), kEveryLayerBlock.end(),
                     [&](LayerBlock block) { return name_of(block) == word; });
    if (found == kEveryLayerBlock.end()) {
      return reader.refuse("blocks", "'" + word + "'", "attention, state_space, mlp or experts",
                           "");
    }
    model.blocks.push_back(*found);
  }
  if (expected && static_cast<std::int64_t>(words.size()) != model.layers) {
    reader.refuse("blocks", "one word per layer (" + std::to_string(model.layers) + ")");
    model.blocks.assign(static_cast<std::size_t>(model.layers), LayerBlock::attention);
  }
}

}  // namespace

void read_model_parts(ObjectReader& reader, ModelSpec& model) {
  const FamilyFacts& facts = facts_of(model.family);
  read_blocks(reader, model, facts);
  const auto has = [&](LayerBlock block) { return block_count(model, block) > 0; };
  const bool blocks = facts.keys == ConfigKeys::blocks;
  const bool experts = blocks ? has(LayerBlock::experts) : facts.experts.has_value();
  if (auto moe = part(reader, "moe", experts, facts)) {
    model.moe = part_from<MoeSpec>(*moe, model);
  }
  if (auto mla = part(reader, "mla", facts.latent_attention, facts)) {
    model.mla = part_from<MlaSpec>(*mla, model);
  }
  const bool compressed = facts.compressed_attention;
  if (auto indexer = part(reader, "indexer", facts.sparse_attention || compressed, facts, true)) {
    model.indexer = part_from<IndexerSpec>(*indexer, model);
  }
  if (auto attention = part(reader, "compressed_attention", compressed, facts, true)) {
    model.compressed = part_from<CompressedAttentionSpec>(*attention, model);
  }
  if (auto hyper = part(reader, "hyper_connections", compressed, facts, true)) {
    model.hyper = part_from<HyperConnectionSpec>(*hyper, model);
  }
  if (auto linear = part(reader, "linear_attention", facts.linear_attention, facts, true)) {
    model.linear = part_from<LinearAttentionSpec>(*linear, model);
    const LinearAttentionSpec& read = *model.linear;
    if (read.key_heads > 0 && read.value_heads % read.key_heads != 0) {
      linear->refuse("value_heads", "a multiple of key_heads = " + std::to_string(read.key_heads));
    }
  }
  if (auto mixer = part(reader, "state_space", has(LayerBlock::state_space), facts, true)) {
    model.state_space = part_from<StateSpaceSpec>(*mixer, model);
    if (model.state_space->groups > 0 &&
        model.state_space->heads % model.state_space->groups != 0) {
      mixer->refuse("heads", "a multiple of groups");
    }
  }
  if (auto vision = part(reader, "vision", facts.vision != VisionTower::none, facts)) {
    model.vision = part_from<VisionSpec>(*vision, model);
  }
}

void add_model_parts(Node& node, const ModelSpec& model) {
  add(node, "moe", part_node(model.moe, model));
  add(node, "mla", part_node(model.mla, model));
  if (model.indexer) add(node, "indexer", part_node(model.indexer, model));
  if (model.compressed) {
    add(node, "compressed_attention", part_node(model.compressed, model));
    add(node, "hyper_connections", part_node(model.hyper, model));
  }
  if (model.linear) add(node, "linear_attention", part_node(model.linear, model));
  if (model.state_space) add(node, "state_space", part_node(model.state_space, model));
  if (!model.blocks.empty()) {
    Node list = list_node();
    for (const LayerBlock block : model.blocks) list.items.push_back(node_of(name_of(block)));
    add(node, "blocks", std::move(list));
  }
  add(node, "vision", part_node(model.vision, model));
}

}  // namespace tessera
