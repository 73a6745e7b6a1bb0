// A config.json without a fault, for tests that change a key of it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/model_spec.h"

namespace tessera {

inline nlohmann::json valid_config() {
  return {{"model_type", "qwen2"},         {"architectures", {"Qwen2ForCausalLM"}},
          {"num_hidden_layers", 2},        {"hidden_size", 64},
          {"num_attention_heads", 4},      {"num_key_value_heads", 2},
          {"intermediate_size", 176},      {"vocab_size", 131},
          {"rms_norm_eps", 1e-6},          {"rope_theta", 1e4},
          {"torch_dtype", "float32"},      {"tie_word_embeddings", true},
          {"max_position_embeddings", 512}};
}

inline std::optional<ModelSpec> parse_config(const nlohmann::json& config, Problems& problems) {
  return parse_model_spec(config.dump(), "config.json", problems);
}

}  // namespace tessera
