// Attention of chosen keys and of entries of a config.json: indexers (DeepSeek-V3.2, GLM-5) and
// DeepSeek-V4's compressed attention with its residual streams.
#include <algorithm>
#include <string>
#include <utility>

#include "cost_models/spec/config/model_config.h"

namespace tessera {
namespace {

/// Words of a list, or none where the file has null or no such key.
std::vector<std::string> words_of(ObjectReader& reader, std::string_view key) {
  std::vector<std::string> words;
  const Node* const node = reader.find(key);
  if (node != nullptr && !node->is(Node::Kind::null)) reader.list(key, words);
  return words;
}

/// Which layers take the choice of the one before (true), as GlmMoeDsaConfig resolves it: named one
/// by one, by letters, or all but every index_topk_freq-th from an offset on.
std::vector<bool> shared_choices(ObjectReader& reader, const ModelSpec& spec) {
  std::vector<std::string> types = words_of(reader, "indexer_types");
  std::string_view key = "indexer_types";
  const Node* const pattern = reader.find("index_topk_pattern");
  if (types.empty() && pattern != nullptr && !pattern->is(Node::Kind::null)) {
    std::string letters;
    key = "index_topk_pattern";
    reader.required(key, letters);
    for (const char letter : letters) {
      types.push_back(letter == 'F' ? "full" : letter == 'S' ? "shared" : std::string(1, letter));
    }
  }
  std::int64_t frequency = 1, offset = 2;
  reader.optional("index_topk_freq", frequency, kConfigSize);
  reader.optional("index_skip_topk_offset", offset, kNotNegative);
  std::vector<bool> shared;
  for (std::int64_t layer = 0; types.empty() && frequency > 0 && layer < spec.layers; ++layer) {
    shared.push_back(std::max<std::int64_t>(layer - offset + 1, 0) % frequency != 0);
  }
  for (const std::string& type : types) {
    if (type != "full" && type != "shared") {
      reader.refuse(key, "'" + type + "'", "full or shared", "");
      return {};
    }
    shared.push_back(type == "shared");
  }
  if (static_cast<std::int64_t>(shared.size()) != spec.layers) {
    reader.refuse(key, "one entry per layer");
    return {};
  }
  return shared;
}

IndexerSpec indexer_of(ObjectReader& reader, IndexerSpec indexer) {
  if (indexer.heads == 0) {
    reader.required("index_n_heads", indexer.heads, kConfigSize);
  } else {
    reader.optional("index_n_heads", indexer.heads, kConfigSize);
  }
  reader.optional("index_head_dim", indexer.head_dim, kConfigSize);
  reader.optional("index_topk", indexer.chosen, kConfigSize);
  return indexer;
}

/// layer_types, or compress_ratios (whose entries beyond the layers are of those that predict
/// further tokens), or all entries in two layers and then by turns (DeepseekV4Config).
void read_entries(ObjectReader& reader, ModelSpec& spec, CompressedAttentionSpec& attention) {
  constexpr std::string_view kWindow = "sliding_attention", kChosen = "compressed_sparse_attention",
                             kAll = "heavily_compressed_attention";
  const std::vector<std::string> types =
      read_layer_types(reader, spec.layers, {kWindow, kChosen, kAll});
  std::vector<std::int64_t> ratios;
  const Node* const node = reader.find("compress_ratios");
  if (types.empty() && node != nullptr && !node->is(Node::Kind::null)) {
    reader.list("compress_ratios", ratios, kNotNegative);
    if (static_cast<std::int64_t>(ratios.size()) < spec.layers) {
      return reader.refuse("compress_ratios", "one entry per layer");
    }
  }
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
    const auto at = static_cast<std::size_t>(layer);
    std::string_view type = layer > 1 && layer % 2 == 1 ? kChosen : kAll;
    if (!types.empty()) type = types[at];
    if (!ratios.empty()) {
      type = ratios[at] == 0                       ? kWindow
             : ratios[at] == attention.chosen_rate ? kChosen
             : ratios[at] == attention.all_rate    ? kAll
                                                   : "";
    }
    if (type.empty()) {
      return reader.refuse("compress_ratios", std::to_string(ratios[at]),
                           "0, " + std::to_string(attention.chosen_rate) + " or " +
                               std::to_string(attention.all_rate),
                           "");
    }
    if (type == kChosen) attention.chosen_layers.push_back(layer);
    if (type == kAll) attention.all_layers.push_back(layer);
  }
}

void read_rates(ObjectReader& reader, CompressedAttentionSpec& attention) {
  if (auto rates = reader.object("compress_rates", false)) {
    rates->optional("compressed_sparse_attention", attention.chosen_rate, kConfigSize);
    rates->optional("heavily_compressed_attention", attention.all_rate, kConfigSize);
  }
  reader.optional("compress_rate_csa", attention.chosen_rate, kConfigSize);
  reader.optional("compress_rate_hca", attention.all_rate, kConfigSize);
}

}  // namespace

void read_indexer(ObjectReader& reader, ModelSpec& spec) {
  IndexerSpec indexer = indexer_of(reader, {.head_dim = 128, .chosen = 2048});
  if (spec.mla && spec.mla->q_lora_rank == 0) {
    reader.refuse("q_lora_rank", "a size: the indexer reads the compressed queries");
  }
  const std::vector<bool> shared = shared_choices(reader, spec);
  for (std::size_t layer = 0; layer < shared.size(); ++layer) {
    if (!shared[layer]) continue;
    if (layer == 0) {
      reader.refuse("indexer_types", "an indexer in the first layer",
                    "there is no layer before it whose choice it could take");
    }
    indexer.shared_layers.push_back(static_cast<std::int64_t>(layer));
  }
  spec.indexer = std::move(indexer);
}

void read_compressed(ObjectReader& reader, ModelSpec& spec) {
  CompressedAttentionSpec attention{.rope_dim = spec.head_dim / 8,
                                    .groups = 8,
                                    .group_rank = 1024,
                                    .window = 128,
                                    .chosen_rate = 4,
                                    .all_rate = 128};
  reader.required("q_lora_rank", attention.query_rank, kConfigSize);
  attention.rope_dim =
      static_cast<std::int64_t>(static_cast<double>(spec.head_dim) * spec.rope.rotated_fraction);
  reader.optional("qk_rope_head_dim", attention.rope_dim, kConfigSize);
  if (attention.rope_dim % 2 != 0 || attention.rope_dim > spec.head_dim) {
    reader.refuse("qk_rope_head_dim", "an even number, at most head_dim");
  }
  if (spec.head_dim > 0) {
    spec.rope.rotated_fraction =
        static_cast<double>(attention.rope_dim) / static_cast<double>(spec.head_dim);
  }
  spec.rope.attention_factor = 1;  // DeepseekV4Config sets it beside yarn
  reader.optional("o_groups", attention.groups, kConfigSize);
  reader.optional("o_lora_rank", attention.group_rank, kConfigSize);
  if (attention.groups > 0 && spec.query_heads % attention.groups != 0) {
    reader.refuse("o_groups",
                  "a divisor of num_attention_heads (" + std::to_string(spec.query_heads) + ")");
  }
  reader.optional("sliding_window", attention.window, kConfigSize);
  read_rates(reader, attention);
  read_entries(reader, spec, attention);
  if (spec.kv_heads != 1) {
    reader.refuse("num_key_value_heads", "1: all query heads share one head of keys");
  }
  bool bias = false;  // attention's projections have none whatever the key says
  reader.optional("attention_bias", bias);
  if (bias) reader.refuse("attention_bias", "false, as DeepSeek-V4 was published");
  reader.optional("mlp_bias", bias);
  if (bias) reader.refuse("mlp_bias", "false, as DeepSeek-V4 was published");
  spec.indexer = indexer_of(reader, {.heads = 64, .head_dim = 128, .chosen = 512});
  HyperConnectionSpec hyper{.streams = 4, .iterations = 20};
  reader.optional("hc_mult", hyper.streams, kConfigSize);
  reader.optional("hc_sinkhorn_iters", hyper.iterations, kConfigSize);
  spec.hyper = hyper;
  spec.compressed = std::move(attention);
}

}  // namespace tessera
