// The architecture of one transformer, as far as planning, simulating and executing need it.
//
// A plain value, read from a Hugging Face config.json (read_model_spec) or from a plan. Sizes count
// elements; no field is ever defaulted by a reader of the struct.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/spec/dtype.h"
#include "cost_models/spec/problem.h"

namespace tessera {

/// The families whose checkpoints are known by name and shape.
enum class ModelFamily { llama, mistral, qwen2, qwen3 };
std::string_view name_of(ModelFamily family);

/// What stands on top of the last layer: a vocabulary projection, or one value per token
/// (`score.weight`, the critic and reward models of verl).
enum class ModelHead { language_model, value };
std::string_view name_of(ModelHead head);

enum class RopeScalingKind { none, linear, llama3, yarn };
std::string_view name_of(RopeScalingKind kind);

/// Rotary embedding; fields of other kinds are zero. Semantics of transformers 5.17
/// modeling_rope_utils.py.
struct RopeSpec {
  double theta = 10000.0;
  RopeScalingKind kind = RopeScalingKind::none;
  double factor = 1.0;
  double low_freq_factor = 0.0;                    // llama3
  double high_freq_factor = 0.0;                   // llama3
  std::int64_t original_max_position_embeddings = 0;  // llama3, yarn
  double beta_fast = 32.0;                         // yarn
  double beta_slow = 1.0;                          // yarn
  double attention_factor = 1.0;                   // yarn: factor on cos and sin, resolved
  bool truncate = true;                            // yarn: round the correction range

  bool operator==(const RopeSpec&) const = default;
};

struct ModelSpec {
  ModelFamily family = ModelFamily::llama;
  ModelHead head = ModelHead::language_model;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t query_heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t ffn = 0;    // columns of gate and of up
  std::int64_t vocab = 0;
  std::int64_t max_positions = 0;
  bool tied_embeddings = false;
  bool qkv_bias = false;
  bool output_bias = false;  // o_proj
  bool mlp_bias = false;
  bool qk_norm = false;
  double norm_epsilon = 1e-6;
  std::int64_t sliding_window = 0;  // tokens; 0 = full attention
  RopeSpec rope;
  DType dtype = DType::bf16;  // of the checkpoint
  std::optional<std::int64_t> bos_token, eos_token, pad_token;

  bool operator==(const ModelSpec&) const = default;
};

/// Reads an HF folder, its config.json, or a preset's name (configs/models/NAME). Appends to
/// `problems` and returns nullopt when anything is missing, of a wrong type or impossible; an
/// unknown architecture is refused by name.
std::optional<ModelSpec> read_model_spec(const std::filesystem::path& where, Problems& problems);

/// The same from the text of a config.json; `file` names it in problems.
std::optional<ModelSpec> parse_model_spec(std::string_view text, const std::string& file,
                                          Problems& problems);

/// Parameters as a checkpoint stores them (a tied lm_head counts once).
std::int64_t parameter_count(const ModelSpec& model);

}  // namespace tessera
