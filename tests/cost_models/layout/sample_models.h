// Small models that the layout tests cut.
#pragma once

#include "cost_models/spec/model_spec.h"

namespace tessera {

/// A Qwen2 whose layers, heads and ffn any tp and pp up to 4 divide.
inline ModelSpec even_model(std::int64_t layers = 8) {
  return {.family = ModelFamily::qwen2,
          .layers = layers,
          .hidden = 32,
          .query_heads = 8,
          .kv_heads = 8,
          .head_dim = 4,
          .ffn = 64,
          .vocab = 64,
          .max_positions = 128,
          .qkv_bias = true};
}

/// Nothing divides evenly: odd vocabulary, shared KV heads, odd ffn, tied embeddings, qk-norm.
inline ModelSpec odd_model(std::int64_t layers = 3) {
  return {.family = ModelFamily::qwen3,
          .layers = layers,
          .hidden = 10,
          .query_heads = 6,
          .kv_heads = 2,
          .head_dim = 3,
          .ffn = 11,
          .vocab = 131,
          .max_positions = 128,
          .tied_embeddings = true,
          .qk_norm = true};
}

/// A Qwen2-MoE: six experts, a shared one, a plain layer, columns that 4 does not divide.
inline ModelSpec expert_model() {
  ModelSpec model = odd_model(3);
  model.family = ModelFamily::qwen2_moe;
  model.qk_norm = false;
  model.moe = MoeSpec{.experts = 6,
                      .experts_per_token = 2,
                      .expert_ffn = 7,
                      .shared_ffn = 9,
                      .shared_gate = true,
                      .dense_layers = {1}};
  return model;
}

}  // namespace tessera
