// Linear attention and the kinds of layers of a config.json.
#include <algorithm>
#include <utility>

#include "cost_models/spec/config/model_config.h"

namespace tessera {
namespace {

constexpr std::string_view kFull = "full_attention", kLinear = "linear_attention";

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

namespace {

/// MiniMax: as many heads as attention has; layer_types or, before transformers had the class,
/// attn_type_list (1 = attention of all tokens), else every other layer from the first.
void read_lightning(ObjectReader& reader, ModelSpec& spec) {
  LinearAttentionSpec linear{.key_heads = spec.query_heads,
                             .value_heads = spec.query_heads,
                             .key_dim = spec.head_dim,
                             .value_dim = spec.head_dim,
                             .block = 256};
  reader.optional("block_size", linear.block, kConfigSize);
  const std::vector<std::string> types = read_layer_types(reader, spec.layers, {kFull, kLinear});
  std::vector<std::int64_t> full;
  reader.list("attn_type_list", full, Whole{.least = 0, .most = 1}, false);
  if (!full.empty() && static_cast<std::int64_t>(full.size()) != spec.layers) {
    reader.refuse("attn_type_list", "one entry per layer");
    full.clear();
  }
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
    const auto at = static_cast<std::size_t>(layer);
    const bool all = !types.empty()  ? types[at] == kFull
                     : !full.empty() ? full[at] == 1
                                     : layer % 2 == 0;
    if (all) spec.full_attention_layers.push_back(layer);
  }
  spec.linear = linear;
}

void read_delta_net(ObjectReader& reader, ModelSpec& spec) {
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
  spec.linear = linear;
}

}  // namespace

void read_linear(ObjectReader& reader, const FamilyFacts& facts, ModelSpec& spec) {
  if (facts.tensors.linear == LinearTensors::by_heads) {
    read_lightning(reader, spec);
  } else {
    read_delta_net(reader, spec);
  }
  if (spec.full_attention_layers.empty()) {
    reader.refuse("layer_types", "a layer of full attention at least",
                  "models without a KV cache are not supported");
  }
}

}  // namespace tessera
