// The architecture of one transformer, as far as planning, simulating and executing need it.
//
// A plain value, read from a Hugging Face config.json (read_model_spec) or from a plan. Sizes count
// elements; no field is ever defaulted by a reader of the struct.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "cost_models/spec/dtype.h"
#include "cost_models/spec/model_parts.h"

namespace tessera {

/// The families whose checkpoints are known by name and shape. families.cc has a row for each;
/// a new one stands before the last.
enum class ModelFamily {
  llama,
  mistral,
  qwen2,
  qwen3,
  mixtral,
  qwen2_moe,
  qwen3_moe,
  deepseek_v2,
  deepseek_v3,
  gpt2,
  gpt_oss,
  nemotron,
  gemma2,
  gemma3_text,
  phi3,
  olmo2,
  olmo3,
  glm4_moe,
  glm4_moe_lite,
  seed_oss,
  mimo,
  minimax_m2,
  hy_v3,
  glm4,
  smollm3,
  ministral,
  ministral3,
  olmoe,
  ernie4_5,
  ernie4_5_moe,
  hunyuan_v1_dense,
  hunyuan_v1_moe,
  qwen3_next,
  qwen3_5,
  qwen3_5_moe,
  nemotron_h,
  qwen3_vl,
  qwen3_vl_moe,
  glm4v,
  glm4v_moe,
  llama4,
  deepseek_v32,
  deepseek_v4,
  glm_moe_dsa,
  minimax,
  gemma3,
  qwen2_5_vl,
};
inline constexpr auto kEveryFamily = [] {
  std::array<ModelFamily, static_cast<std::size_t>(ModelFamily::qwen2_5_vl) + 1> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<ModelFamily>(i);
  return all;
}();
/// Also the `model_type` of its config.json.
std::string_view name_of(ModelFamily family);

/// The projection on top of the last layer: a vocabulary projection, or one value per token
/// (`score.weight`, the critic and reward models of verl).
enum class ModelHead { language_model, value };
std::string_view name_of(ModelHead head);

/// What a role does with its model's layers of multi-token prediction: it leaves them out, as
/// transformers' classes do; it holds them (and has gradients and states of them where it trains);
/// or its passes run them, too.
enum class MtpUse { left_out, held, trained };
inline constexpr std::array kEveryMtpUse{MtpUse::left_out, MtpUse::held, MtpUse::trained};
std::string_view name_of(MtpUse use);
std::optional<MtpUse> mtp_use_from(std::string_view name);

enum class RopeScalingKind { none, linear, llama3, yarn, longrope };
std::string_view name_of(RopeScalingKind kind);

/// Rotary embedding; fields of other kinds are zero. Semantics of transformers 5.17
/// modeling_rope_utils.py.
struct RopeSpec {
  double theta = 10000.0;
  RopeScalingKind kind = RopeScalingKind::none;
  double factor = 1.0;
  double low_freq_factor = 0.0;                       // llama3
  double high_freq_factor = 0.0;                      // llama3
  std::int64_t original_max_position_embeddings = 0;  // llama3, yarn, longrope
  double beta_fast = 32.0;                            // yarn
  double beta_slow = 1.0;                             // yarn
  double attention_factor = 1.0;  // yarn, longrope: factor on cos and sin, resolved
  bool truncate = true;           // yarn: round the correction range
  double rotated_fraction = 1.0;  // of head_dim (partial_rotary_factor)

  bool operator==(const RopeSpec&) const = default;
};

struct ModelSpec {
  ModelFamily family = ModelFamily::llama;
  ModelHead head = ModelHead::language_model;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t query_heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;  // of queries and keys; of values too, but for MLA
  std::int64_t ffn = 0;       // columns of gate and of up, in layers without experts
  std::int64_t vocab = 0;
  std::int64_t max_positions = 0;
  bool tied_embeddings = false;
  bool qkv_bias = false;
  bool output_bias = false;  // o_proj
  bool mlp_bias = false;
  bool qk_norm = false;
  double norm_epsilon = 1e-6;
  std::int64_t sliding_window = 0;  // tokens; 0 = full attention
  /// Attention of the layers with a window looks back to the start of the sequence's chunk of
  /// `sliding_window` tokens (Llama 4), not by as many tokens.
  bool chunked_attention = false;
  /// Of a model with a sliding window or with linear attention, ascending.
  std::vector<std::int64_t> full_attention_layers;
  NormKind norm = NormKind::rms;
  MlpKind mlp = MlpKind::swiglu;
  bool learned_positions = false;  // an embedding of positions instead of `rope`
  bool attention_sinks = false;    // a learned logit per query head (gpt-oss)
  std::optional<MoeSpec> moe;
  std::optional<MlaSpec> mla;
  /// With `mla`: attention of the keys that it chooses; with `compressed`: of the entries.
  std::optional<IndexerSpec> indexer;
  std::optional<CompressedAttentionSpec> compressed;
  std::optional<HyperConnectionSpec> hyper;
  std::optional<LinearAttentionSpec> linear;
  std::optional<StateSpaceSpec> state_space;
  /// What each layer is, of a model whose layers are one block each, behind one norm; empty: every
  /// layer is attention, or linear attention, and an MLP or experts behind it.
  std::vector<LayerBlock> blocks;
  std::optional<VisionSpec> vision;
  /// Multi-token-prediction layers of the published model, and what is done with them. Those that
  /// are not left out are rows of the parameter table; mtp_parameter_count counts them anyway.
  std::int64_t mtp_layers = 0;
  MtpUse mtp = MtpUse::left_out;
  RopeSpec rope;
  DType dtype = DType::bf16;  // of the checkpoint
  std::optional<std::int64_t> bos_token, eos_token, pad_token;

  bool operator==(const ModelSpec&) const = default;
};

/// Reads an HF folder, its config.json, or a preset's name (configs/models/NAME). Appends to
/// `problems` and returns nullopt when anything is missing, of a wrong type or impossible; an
/// unknown architecture is refused by name.
std::optional<ModelSpec> read_model_spec(const std::filesystem::path& where, Problems& problems);

/// Reads the text of a config.json as read_model_spec does a file; `file` names it in problems.
std::optional<ModelSpec> parse_model_spec(std::string_view text, const std::string& file,
                                          Problems& problems);

/// Tokens that a sequence may have: max_positions, or as far as the rotary scaling reaches (linear
/// factor x max_positions, yarn factor x original; llama3's max_positions is scaled already). 0 =
/// the config does not say.
std::int64_t context_length(const ModelSpec& model);

/// True when the layer has routed experts.
bool is_moe_layer(const ModelSpec& model, std::int64_t layer);
std::int64_t moe_layer_count(const ModelSpec& model);
/// True when the layer has linear attention: it caches no token.
bool is_linear_layer(const ModelSpec& model, std::int64_t layer);
/// Layers of multi-token prediction that the model holds, and that its passes run.
std::int64_t held_mtp_layers(const ModelSpec& model);
std::int64_t run_mtp_layers(const ModelSpec& model);
/// Layers of a kind of block (ModelSpec::blocks).
std::int64_t block_count(const ModelSpec& model, LayerBlock block);
/// Layers that cache keys and values.
std::int64_t attention_layer_count(const ModelSpec& model);
/// Which entries attention of the layer sees beside its window; none without `compressed`.
LayerEntries entries_of_layer(const ModelSpec& model, std::int64_t layer);
/// Tokens that attention of the layer looks back on; 0 = all.
std::int64_t window_of_layer(const ModelSpec& model, std::int64_t layer);
/// Elements of a token between two layers: the hidden state, once for each residual stream.
std::int64_t stream_width(const ModelSpec& model);
/// Elements of one head's values.
std::int64_t value_head_dim(const ModelSpec& model);

/// Parameters as a checkpoint stores them (a tied lm_head counts once).
std::int64_t parameter_count(const ModelSpec& model);
/// Those that one token uses: of the routed experts only experts_per_token in each layer.
std::int64_t active_parameter_count(const ModelSpec& model);
/// Parameters of one routed expert; 0 without experts.
std::int64_t expert_parameter_count(const ModelSpec& model);
/// Parameters of all mtp_layers, without embedding and head (they are the main model's).
/// DeepSeek-V3, arXiv:2412.19437, section 2.2: two norms, a projection of 2 h, one layer, a norm.
std::int64_t mtp_parameter_count(const ModelSpec& model);

}  // namespace tessera
