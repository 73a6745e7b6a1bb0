// Positions and windows of a config.json. Semantics of transformers 5.17 modeling_rope_utils.py;
// both rope_theta with rope_scaling and rope_parameters are read.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/spec/config/model_config.h"

namespace tessera {
namespace {

/// Yarn's attention factor, resolved as _compute_yarn_parameters does.
void read_yarn(ObjectReader& scaling, std::int64_t max_positions, RopeSpec& rope) {
  rope.kind = RopeScalingKind::yarn;
  rope.original_max_position_embeddings = max_positions;
  scaling.optional("original_max_position_embeddings", rope.original_max_position_embeddings,
                   kConfigSize);
  rope.factor = static_cast<double>(max_positions) /
                static_cast<double>(rope.original_max_position_embeddings);
  scaling.optional("factor", rope.factor, kAboveZero);
  scaling.optional("beta_fast", rope.beta_fast, kAboveZero);
  scaling.optional("beta_slow", rope.beta_slow, kAboveZero);
  scaling.optional("truncate", rope.truncate);
  std::optional<double> attention_factor, mscale, mscale_all_dim;
  scaling.optional("attention_factor", attention_factor, kAboveZero);
  scaling.optional("mscale", mscale);
  scaling.optional("mscale_all_dim", mscale_all_dim);
  const auto scale = [&](double by) {
    return rope.factor <= 1 ? 1.0 : 0.1 * by * std::log(rope.factor) + 1.0;
  };
  if (attention_factor) {
    rope.attention_factor = *attention_factor;
  } else if (mscale.value_or(0) != 0 && mscale_all_dim.value_or(0) != 0) {
    rope.attention_factor = scale(*mscale) / scale(*mscale_all_dim);
  } else {
    rope.attention_factor = scale(1.0);
  }
}

/// Phi-3's: factors of every frequency, which no plan needs, for sequences within and beyond the
/// original positions; the attention factor as _compute_longrope_parameters resolves it.
/// The original positions stand beside rope_scaling (Phi-3) or in it.
void read_longrope(ObjectReader& scaling, std::int64_t max_positions, RopeSpec& rope) {
  rope.kind = RopeScalingKind::longrope;
  if (rope.original_max_position_embeddings == 0) {
    rope.original_max_position_embeddings = max_positions;
  }
  scaling.optional("original_max_position_embeddings", rope.original_max_position_embeddings,
                   kConfigSize);
  const auto original = static_cast<double>(rope.original_max_position_embeddings);
  const double factor = static_cast<double>(max_positions) / original;
  if (factor > 1) rope.attention_factor = std::sqrt(1 + std::log(factor) / std::log(original));
  std::optional<double> stated;
  scaling.optional("attention_factor", stated, kAboveZero);
  if (stated) rope.attention_factor = *stated;
}

/// HunYuan's (HunYuanDenseV1RotaryEmbedding): a plain table of a larger theta.
void read_alpha(ObjectReader& scaling, std::int64_t head_dim, RopeSpec& rope) {
  double alpha = 1;
  scaling.required("alpha", alpha, kAboveZero);
  const auto dim = static_cast<double>(head_dim);
  if (head_dim > 2) rope.theta *= std::pow(alpha, dim / (dim - 2));
}

void read_scaling(ObjectReader& scaling, const std::string& kind, std::int64_t max_positions,
                  RopeSpec& rope) {
  if (kind == "default") return;
  if (kind == "linear") {
    rope.kind = RopeScalingKind::linear;
    scaling.required("factor", rope.factor, kAboveZero);
  } else if (kind == "llama3") {
    rope.kind = RopeScalingKind::llama3;
    scaling.required("factor", rope.factor, kAboveZero);
    scaling.required("low_freq_factor", rope.low_freq_factor, kAboveZero);
    scaling.required("high_freq_factor", rope.high_freq_factor, kAboveZero);
    rope.original_max_position_embeddings = max_positions;
    scaling.optional("original_max_position_embeddings", rope.original_max_position_embeddings,
                     kConfigSize);
  } else if (kind == "yarn") {
    read_yarn(scaling, max_positions, rope);
  } else if (kind == "longrope" || kind == "su") {
    read_longrope(scaling, max_positions, rope);
  } else {
    scaling.refuse(scaling.has("rope_type") ? "rope_type" : "type", "'" + kind + "'",
                   "default, linear, llama3, yarn or longrope", "");
  }
}

/// A family's own scaling, for a config.json without one.
void default_scaling(const YarnDefault& yarn, RopeSpec& rope) {
  rope.kind = RopeScalingKind::yarn;
  rope.factor = yarn.factor;
  rope.original_max_position_embeddings = yarn.original_positions;
  rope.attention_factor = 0.1 * std::log(yarn.factor) + 1.0;
  rope.truncate = yarn.truncate;
}

/// Windows that some layers have and others not.
void read_mixed(ObjectReader& reader, const FamilyFacts& facts, std::vector<std::string> types,
                std::int64_t window, ModelSpec& spec) {
  if (types.empty() && facts.window == WindowRule::if_used_by_layer) {
    reader.refuse("layer_types", "one entry per layer where use_sliding_window is true");
  }
  std::int64_t pattern = facts.window_pattern;
  reader.optional("sliding_window_pattern", pattern, kConfigSize);
  for (auto i = static_cast<std::int64_t>(types.size()); i < spec.layers; ++i) {
    types.push_back((i + 1) % pattern != 0 ? "sliding_attention" : "full_attention");
  }
  if (std::find(types.begin(), types.end(), "sliding_attention") == types.end()) return;
  spec.sliding_window = window;
  for (std::int64_t i = 0; i < spec.layers; ++i) {
    if (types[static_cast<std::size_t>(i)] != "sliding_attention") {
      spec.full_attention_layers.push_back(i);
    }
  }
}

/// Windows in all layers alike, from layer `first_sliding` on.
void read_alike(ObjectReader& reader, const std::vector<std::string>& types,
                std::int64_t first_sliding, std::int64_t window, ModelSpec& spec) {
  if (!types.empty()) {
    const auto sliding = std::count(types.begin(), types.end(), std::string("sliding_attention"));
    if (sliding != 0 && sliding != spec.layers) {
      reader.refuse("layer_types", "full or sliding attention in all layers alike");
    }
    if (sliding > 0) spec.sliding_window = window;
  } else if (first_sliding > 0 && first_sliding < spec.layers && window > 0) {
    reader.refuse("max_window_layers", "0, or as many as there are layers",
                  "windows in some layers only are not supported");
  } else if (first_sliding == 0) {
    spec.sliding_window = window;
  }
}

/// Llama 4: chunks in the layers with positions; no_rope_layers has a 1 for each of these, or all
/// but every no_rope_layer_interval-th have some.
void read_chunks(ObjectReader& reader, const FamilyFacts& facts, ModelSpec& spec) {
  std::int64_t chunk = facts.default_window, interval = 4;
  if (const Node* node = reader.find("attention_chunk_size")) {
    if (node->is(Node::Kind::null)) chunk = 0;
    reader.optional("attention_chunk_size", chunk, kConfigSize);
  }
  reader.optional("no_rope_layer_interval", interval, kConfigSize);
  std::vector<std::int64_t> placed;
  const Node* const list = reader.find("no_rope_layers");
  if (list != nullptr && !list->is(Node::Kind::null)) {
    reader.list("no_rope_layers", placed, Whole{.least = 0, .most = 1});
  }
  if (!placed.empty() && static_cast<std::int64_t>(placed.size()) < spec.layers) {
    return reader.refuse("no_rope_layers", "one entry per layer");
  }
  const std::vector<std::string> types =
      read_layer_types(reader, spec.layers, {"full_attention", "chunked_attention"});
  for (std::int64_t i = 0; i < spec.layers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool rotated = placed.empty() ? interval > 0 && (i + 1) % interval != 0 : placed[at] == 1;
    if (!types.empty() && rotated != (types[at] == "chunked_attention")) {
      return reader.refuse("layer_types", "chunked_attention in the layers with positions alone");
    }
    if (!rotated && chunk > 0) spec.full_attention_layers.push_back(i);
  }
  spec.sliding_window = chunk;
  spec.chunked_attention = chunk > 0;
}

/// Rotated elements of a head, stated as their number.
void read_rotated(ObjectReader& reader, std::string_view key, ModelSpec& spec) {
  std::int64_t rotated = 0;
  reader.optional(key, rotated,
                  Whole{.least = 2, .most = std::max<std::int64_t>(2, spec.head_dim)});
  if (rotated > 0 && spec.head_dim > 0) {
    spec.rope.rotated_fraction = static_cast<double>(rotated) / static_cast<double>(spec.head_dim);
  }
}

}  // namespace

void read_rope(ObjectReader& reader, const FamilyFacts& facts, ModelSpec& spec) {
  RopeSpec& rope = spec.rope;
  const bool partial = facts.rope.rotated_fraction.has_value();
  rope.theta = facts.rope.default_theta;
  rope.rotated_fraction = facts.rope.rotated_fraction.value_or(1.0);
  constexpr Real kShare{.least = 0, .most = 1, .above = true};
  if (partial) reader.optional("partial_rotary_factor", rope.rotated_fraction, kShare);
  if (!facts.rope.rotated_key.empty()) read_rotated(reader, facts.rope.rotated_key, spec);
  reader.optional("rope_theta", rope.theta, kAboveZero);
  const Node* parameters = reader.find("rope_parameters");
  const char* key = parameters != nullptr && !parameters->is(Node::Kind::null) ? "rope_parameters"
                                                                               : "rope_scaling";
  std::optional<ObjectReader> scaling = reader.object(key, false);
  if (!scaling) {
    if (facts.rope.yarn) default_scaling(*facts.rope.yarn, rope);
    return;
  }
  if (!facts.rope.part.empty() && scaling->has(facts.rope.part)) {
    scaling = scaling->object(facts.rope.part);
    if (!scaling) return;
  }
  scaling->optional("rope_theta", rope.theta, kAboveZero);
  double rotated = rope.rotated_fraction;
  scaling->optional("partial_rotary_factor", rotated, kShare);
  if (partial) {
    rope.rotated_fraction = rotated;
  } else if (rotated != 1) {
    scaling->refuse("partial_rotary_factor", "1: whole heads are rotated");
  }
  std::string kind = "default";
  scaling->optional("type", kind);
  scaling->optional("rope_type", kind);
  if (facts.rope.sections && kind == "mrope") kind = "default";
  if (kind == "longrope" || kind == "su") {
    reader.optional("original_max_position_embeddings", rope.original_max_position_embeddings,
                    kConfigSize);
  }
  if (facts.rope.ntk_alpha && kind == "dynamic" && scaling->has("alpha")) {
    return read_alpha(*scaling, spec.head_dim, rope);
  }
  read_scaling(*scaling, kind, spec.max_positions, rope);
}

void read_window(ObjectReader& reader, const FamilyFacts& facts, ModelSpec& spec) {
  if (facts.linear_attention || facts.compressed_attention || facts.keys == ConfigKeys::blocks) {
    return;  // read elsewhere
  }
  if (facts.window == WindowRule::chunked) return read_chunks(reader, facts, spec);
  if (facts.sparse_attention) {  // in every layer
    read_layer_types(reader, spec.layers, {"deepseek_sparse_attention"});
    return;
  }
  std::vector<std::string> types =
      read_layer_types(reader, spec.layers, {"full_attention", "sliding_attention"});
  if (facts.window == WindowRule::none) return;
  std::int64_t window = facts.default_window;
  if (const Node* node = reader.find("sliding_window")) {
    // transformers saves 0 where use_sliding_window is false.
    if (node->is(Node::Kind::null)) window = 0;
    reader.optional("sliding_window", window, Whole{.least = 0, .most = kConfigSize.most});
  }
  std::int64_t first_sliding = 0;
  const bool in_all = facts.window == WindowRule::if_used_in_all;
  const bool alike = in_all || facts.window == WindowRule::if_used;
  if (alike || facts.window == WindowRule::if_used_by_layer) {
    bool slides = false;
    first_sliding = 28;
    reader.optional("use_sliding_window", slides);
    reader.optional("max_window_layers", first_sliding, kNotNegative);
    if (in_all) first_sliding = 0;
    if (!slides) window = 0;
  }
  if (alike || facts.window == WindowRule::always) {
    read_alike(reader, types, first_sliding, window, spec);
  } else if (window > 0) {
    read_mixed(reader, facts, std::move(types), window, spec);
  }
}

}  // namespace tessera
