// The parts of a Hugging Face config.json, for parse_model_spec alone. Every function reads its
// keys, appends Problems, and leaves in `spec` what could be read.
#pragma once

#include <string_view>

#include "cost_models/spec/model_spec.h"
#include "cost_models/documents/object_reader.h"

namespace tessera {

inline constexpr Whole kConfigSize{.least = 1, .most = std::int64_t{1} << 31};
inline constexpr Whole kConfigLayers{.least = 1, .most = 1 << 16};

/// Which layers of a family look back a window only.
enum class WindowRule {
  none,          // the key is not read
  always,        // sliding_window in every layer
  by_switch,     // use_sliding_window, and from max_window_layers on; all layers alike
  alternating,   // layer_types; without it every other layer, the first sliding (gpt-oss)
  switch_mixed,  // use_sliding_window, and where layer_types says so
};

/// What distinguishes the families where a config.json does not say it: constants of the
/// architecture and the defaults of transformers 5.17 (models/*/configuration_*.py).
struct FamilyFacts {
  ModelFamily family = ModelFamily::llama;
  WindowRule window = WindowRule::none;
  std::int64_t default_window = 0;
  std::int64_t default_kv_heads = 0;  // 0 = as many as query heads
  std::int64_t default_head_dim = 0;  // 0 = hidden_size / num_attention_heads
  std::int64_t default_positions = 0;
  double default_theta = 10000.0;
  double default_epsilon = 1e-6;
  bool qkv_bias = false, qk_norm = false;
  NormKind norm = NormKind::rms;
  MlpKind mlp = MlpKind::swiglu;
};

/// nullptr for an unknown model_type.
const FamilyFacts* facts_of(std::string_view model_type);

void read_window(ObjectReader& reader, const FamilyFacts& facts, ModelSpec& spec);
void read_rope(ObjectReader& reader, const FamilyFacts& facts, ModelSpec& spec);
/// Experts, for the families that have them.
void read_moe(ObjectReader& reader, ModelSpec& spec);
/// Latent attention; sets head_dim and kv_heads.
void read_mla(ObjectReader& reader, ModelSpec& spec);
void read_vision(ObjectReader& reader, ModelSpec& spec);

}  // namespace tessera
