// Layers that are one block each, and state-space mixers, of a config.json (Nemotron-H).
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "cost_models/spec/config/model_config.h"

namespace tessera {
namespace {

// A letter of hybrid_override_pattern, and the words of layers_block_type: today's, and before
// transformers 5.
struct BlockWord {
  char letter;
  std::string_view name, former;
  LayerBlock block;
};

constexpr BlockWord kWords[] = {
    {'M', "linear_attention", "mamba", LayerBlock::state_space},
    {'*', "full_attention", "attention", LayerBlock::attention},
    {'-', "mlp", "mlp", LayerBlock::mlp},
    {'E', "moe", "moe", LayerBlock::experts},
};

std::vector<LayerBlock> from_list(ObjectReader& reader, std::string_view key) {
  std::vector<std::string> words;
  reader.list(key, words);
  std::vector<LayerBlock> blocks;
  for (const std::string& word : words) {
    const auto* const found = std::find_if(
        std::begin(kWords), std::end(kWords),
        [&](const BlockWord& known) { return known.name == word || known.former == word; });
    if (found == std::end(kWords)) {
      reader.refuse(key, "'" + word + "'", "linear_attention, full_attention, mlp or moe",
                    "blocks of another kind are not supported");
      return {};
    }
    blocks.push_back(found->block);
  }
  return blocks;
}

std::vector<LayerBlock> from_pattern(ObjectReader& reader, std::string_view key) {
  std::string pattern;
  reader.required(key, pattern);
  std::vector<LayerBlock> blocks;
  for (const char letter : pattern) {
    const auto* const found =
        std::find_if(std::begin(kWords), std::end(kWords),
                     [letter](const BlockWord& known) { return known.letter == letter; });
    if (found == std::end(kWords)) {
      reader.refuse(key, std::string("'") + letter + "'", "letters of M, *, - and E",
                    "blocks of another kind are not supported");
      return {};
    }
    blocks.push_back(found->block);
  }
  return blocks;
}

}  // namespace

void read_blocks(ObjectReader& reader, ModelSpec& spec) {
  constexpr std::string_view kList = "layers_block_type", kPattern = "hybrid_override_pattern";
  const bool listed = reader.has(kList) || !reader.has(kPattern);
  const std::string_view key = listed ? kList : kPattern;
  spec.blocks = listed ? from_list(reader, kList) : from_pattern(reader, kPattern);
  spec.layers = static_cast<std::int64_t>(spec.blocks.size());
  if (spec.blocks.empty()) return;
  if (block_count(spec, LayerBlock::attention) == 0) {
    reader.refuse(key, "a layer of full attention at least",
                  "models without a KV cache are not supported");
  }
  bool tied = false;  // the class has a head of its own whatever the key says
  reader.optional("tie_word_embeddings", tied);
  if (tied) reader.refuse("tie_word_embeddings", "false, as Nemotron-H was published");
  std::int64_t stated = spec.layers;
  reader.optional("num_hidden_layers", stated, kConfigLayers);
  if (stated != spec.layers) {
    reader.refuse("num_hidden_layers", "as many layers as " + std::string(key) + " names (" +
                                           std::to_string(spec.layers) + ")");
  }
}

void read_state_space(ObjectReader& reader, ModelSpec& spec) {
  if (block_count(spec, LayerBlock::state_space) == 0) return;
  StateSpaceSpec mixer{.heads = 128,
                       .head_dim = 64,
                       .groups = 8,
                       .state = 128,
                       .kernel = 4,
                       .conv_bias = true,
                       .chunk = 128};
  const auto either = [&](const char* now, const char* former) {
    return reader.has(former) && !reader.has(now) ? former : now;
  };
  reader.optional("mamba_num_heads", mixer.heads, kConfigSize);
  reader.optional("mamba_head_dim", mixer.head_dim, kConfigSize);
  reader.optional(either("n_groups", "mamba_n_groups"), mixer.groups, kConfigSize);
  reader.optional("ssm_state_size", mixer.state, kConfigSize);
  reader.optional(either("conv_kernel", "mamba_d_conv"), mixer.kernel, kConfigSize);
  reader.optional(either("use_conv_bias", "mamba_conv_bias"), mixer.conv_bias);
  reader.optional(either("chunk_size", "mamba_chunk_size"), mixer.chunk, kConfigSize);
  if (mixer.groups > 0 && mixer.heads % mixer.groups != 0) {
    reader.refuse("mamba_num_heads",
                  "a multiple of n_groups (" + std::to_string(mixer.groups) + ")");
  }
  for (const char* const key : {"use_bias", "mamba_proj_bias"}) {
    bool bias = false;
    reader.optional(key, bias);
    if (bias) reader.refuse(key, "false, as Nemotron-H was published");
  }
  spec.state_space = mixer;
}

}  // namespace tessera
