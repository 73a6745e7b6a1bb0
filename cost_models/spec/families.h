// The model families, a row each: every fact that tells one from another.
//
// Constants of the architectures and defaults of transformers 5.17 (models/*/configuration_*.py,
// modeling_*.py). Code asks for the fact that it needs and compares no family
// (tests/structure_test.cc). Pure; any thread.
#pragma once

#include <optional>
#include <string_view>

#include "cost_models/spec/model_spec.h"

namespace tessera {

/// The words in which a config.json states its sizes.
enum class ConfigKeys {
  common,  // num_hidden_layers, hidden_size, ...
  gpt2,    // n_layer, n_embd, ...
  blocks,  // layers_block_type or hybrid_override_pattern count the layers
};

/// Which layers of a family look back a window only.
enum class WindowRule {
  none,              // the key is not read
  always,            // sliding_window in every layer
  if_used,           // use_sliding_window, and from max_window_layers on; all layers alike
  if_used_in_all,    // use_sliding_window: one mask for all layers, whatever max_window_layers says
  if_used_by_layer,  // use_sliding_window, and where layer_types says so
  patterned,         // layer_types; without it all but every n-th layer (FamilyFacts)
  chunked,           // attention_chunk_size, in the layers with positions (no_rope_layers)
};

/// The words in which a config.json states its experts.
enum class ExpertKeys {
  mixtral,     // num_local_experts, of intermediate_size columns
  qwen,        // num_experts, moe_intermediate_size, decoder_sparse_step, mlp_only_layers
  deepseek,    // n_routed_experts, n_shared_experts, first_k_dense_replace, groups
  hunyuan,     // num_experts, num_shared_experts, mlp_layer_types, router_scaling_factor
  blocks,      // n_routed_experts, moe_shared_expert_intermediate_size, groups
  llama4,      // num_local_experts, of intermediate_size columns, moe_layers, one shared expert
  hashed,      // n_routed_experts in every layer, mlp_layer_types or num_hash_layers
  olmoe,       // num_experts in every layer, of intermediate_size columns
  ernie,       // moe_num_experts, moe_k, moe_layer_start_index, _end_index and _interval
  hunyuan_v1,  // num_experts, moe_topk, of intermediate_size columns as the shared one
};

/// Routed experts of a family.
struct ExpertFacts {
  ExpertKeys keys = ExpertKeys::mixtral;
  bool normalised = false;    // chosen scores sum to 1, where norm_topk_prob does not say
  bool router_bias = false;   // on the logits
  bool gated_shared = false;  // one shared expert of shared_expert_intermediate_size, with a gate
  bool every_layer = false;   // ExpertKeys::qwen: no layer has a plain MLP, whatever keys say
  RouterScore score = RouterScore::softmax;
  bool correction_bias = false;  // on the scores for the choice alone
  // The class's defaults where the file is silent.
  std::int64_t default_shared = 0, default_dense = 0, default_groups = 1,
               default_groups_per_token = 1;
  double default_scale = 1.0;
  const char* default_method = "greedy";  // topk_method
};

/// Biases of the linear layers: what the class has, and the keys that state otherwise.
struct BiasFacts {
  bool qkv = false, output = false, mlp = false;
  bool attention_key = false;         // attention_bias: queries, keys, values and output alike
  std::string_view qkv_key;           // of queries, keys and values alone; empty = none
  std::string_view output_key;        // of the attention's output alone
  bool mlp_key = false;               // mlp_bias
  const char* mlp_refused = nullptr;  // why a true mlp_bias is refused
  std::string_view all_refused;       // a key of biases everywhere, which no published model has
};

/// Yarn's scaling that a class takes where the file has none.
struct YarnDefault {
  double factor = 1.0;
  std::int64_t original_positions = 0;
  bool truncate = true;
};

/// Rotary positions of a family.
struct RopeFacts {
  double default_theta = 10000.0;
  std::optional<double> rotated_fraction;  // default of partial_rotary_factor; none = whole heads
  std::optional<YarnDefault> yarn;
  bool sections = false;         // "mrope", the same position in all sections for text
  bool by_window = false;        // layers with a window have a table of their own (Gemma 3)
  bool none = false;             // no positions at all (Nemotron-H)
  bool ntk_alpha = false;        // "dynamic" with alpha, which raises theta (HunYuan)
  bool windows_alone = false;    // layers of full attention have no positions (Llama 4)
  bool complex = false;          // a table of complex numbers in fp32 instead of two of reals
  std::string_view rotated_key;  // rotated elements of a head as a number; empty = no such key
  /// Of several maps in rope_parameters the one that is read; empty = it is one.
  std::string_view part;
};

/// Which of a layer's parts norms stand before and after, those of queries and keys aside; their
/// names: NormNames.
enum class LayerNorms {
  before,  // attention, and the MLP
  after,   // attention, and the MLP
  around,  // all of these
  block,   // before the one block that the layer is
};

struct NormNames {
  std::string_view first = "input_layernorm";  // before attention, or before the block
  std::string_view after_attention = "post_attention_layernorm";
  std::string_view before_mlp = "pre_feedforward_layernorm";
  std::string_view after_mlp = "post_feedforward_layernorm";
};

/// How a checkpoint stores the input projections of linear attention.
enum class LinearTensors {
  together,  // in_proj_qkvz and in_proj_ba, by key heads
  apart,     // in_proj_qkv, in_proj_z, in_proj_b, in_proj_a
  by_heads,  // qkv_proj, of each head its queries, keys and values; output_gate
};

/// Whose vision tower a family has.
enum class VisionTower {
  none,
  qwen2_5,  // RMS norms, a gated MLP, windows
  qwen3,    // layer norms, a plain MLP, learned positions
  glm,      // RMS norms, a gated MLP, learned positions, a convolution that merges
  llama4,   // layer norms, a plain MLP, learned positions, a class token, an MLP that merges
  siglip,   // layer norms, a plain MLP, learned positions, a mean that merges
};

/// Which map of a nested config.json states tie_word_embeddings.
enum class TieKey {
  outside,  // the file's own
  either,   // tied where one of the two says so
  inside,   // text_config
};

/// How a checkpoint stores the linear layers outside the experts.
enum class LayerTensors {
  separate,    // q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj: [out, in]
  conv1d,      // c_attn (queries, keys and values side by side), c_proj, c_fc: [in, out]
  joined,      // qkv_proj and gate_up_proj, each one above the other: [out, in]
  joined_mlp,  // gate_up_proj alone
};

/// How a checkpoint stores routed experts.
enum class ExpertTensors {
  each,         // three tensors an expert
  interleaved,  // one tensor for all, input dim before output dim, gate and up interleaved
  stacked,      // one tensor for all, output dim before input dim, up after gate
  transposed,   // one tensor for all, input dim before output dim, up after gate
};

/// Names of a checkpoint's tensors.
struct TensorNames {
  LayerTensors layer = LayerTensors::separate;
  std::string_view embedding = "model.embed_tokens.weight";
  std::string_view layers = "model.layers.";  // then the layer's number
  std::string_view last_norm = "model.norm", head = "lm_head.weight";
  // As transformers' ...ForTokenClassification calls its head of one value.
  std::string_view value_head = "score.weight";
  std::string_view value_head_bias;  // empty = none
  std::string_view vision = "visual.";
  ExpertTensors experts = ExpertTensors::each;
  LinearTensors linear = LinearTensors::together;
  std::string_view attention = "self_attn.", mlp = "mlp.";
  std::string_view expert_block = "mlp.", gate = "gate_proj", up = "up_proj", down = "down_proj";
  // Inside the expert block: the router, its correction, and a shared expert without a gate.
  std::string_view router = "gate", correction = "gate.e_score_correction_bias",
                   shared = "shared_experts.";
  bool correction_row = false;  // the correction is a matrix of one row
  std::string_view query_norm = "q_norm", key_norm = "k_norm";
  NormNames norms;
};

/// Which linear layers have biases.
enum class BiasPlaces : unsigned { none = 1, qkv = 2, all = 4, none_or_all = 5, any = 7 };
/// The expert that every token uses.
enum class SharedExpert { any, none, gated };

/// A description without a family (Megatron-LM's arguments) is of this one when it states these
/// too, besides its norms, activation, positions, sinks, experts and latent attention; empty =
/// either.
struct Signature {
  BiasPlaces biases = BiasPlaces::any;
  std::optional<bool> qk_norm, sliding_window;
  std::optional<RouterScore> score;
  bool plain_choice = false;  // no groups of experts, no correction of scores
  bool every_layer = false;   // experts in every layer
  SharedExpert shared = SharedExpert::any;
  /// It has parts that such a description cannot state, and is known by its name alone.
  bool by_name = false;
};

/// How transformers' classes compute, where that decides what they keep for a backward pass
/// (cost_models/transformers).
struct ModuleFacts {
  bool wide_norm = false;       // a norm's weight multiplies in fp32
  bool offset_norm = false;     // 1 + the weight does
  bool capped_logits = false;   // a tanh of the logits, which keeps its output
  bool wide_logits = false;     // logits are cast to fp32
  int dropout_masks = 0;        // of what a layer adds to the stream (configured dropout above 0)
  bool wide_rotary = false;     // cosines and sines are in fp32
  bool half_rotary = false;     // cosines and sines of half a head, else they are repeated
  bool layer_rotary = false;    // each layer interleaves them into copies of its own
  bool scaled_queries = false;  // by a factor of each position (Ministral 3)
  bool clamped_gates = false;   // gate and up are clamped
  bool cast_router = false;     // the router's input and weight are cast to fp32 before autocast
  bool wide_router = false;   // the router's input is cast to fp32, the chosen scores' sum clamped
  bool wide_scores = false;   // outputs of experts are weighted in fp32
  bool wide_sigmoid = false;  // a router's sigmoid is in fp32, as its softmax is everywhere
  bool unnormalised = false;  // norm_topk_prob is not read
  bool every_expert = false;  // all experts see all tokens, those not chosen as zeros
  /// Why verl's FSDP engine, which packs sequences for flash attention, cannot run the class.
  const char* no_packing = nullptr;
};

/// One family. A row states what it has otherwise than most.
struct FamilyFacts {
  ModelFamily family = ModelFamily::llama;
  std::string_view name;  // also the model_type of its config.json
  // Parts.
  NormKind norm = NormKind::rms;
  MlpKind mlp = MlpKind::swiglu;
  bool learned_positions = false;
  bool qk_norm = false;
  bool whole_qk_norm = false;  // over all heads of a token together
  bool bare_qk_norm = false;   // without weights, where queries and keys have positions (Llama 4)
  LayerNorms norms = LayerNorms::before;
  bool attention_sinks = false;
  bool gated_attention = false;  // a sigmoid gate on every output, of q_proj's second half
  bool latent_attention = false;
  bool sparse_attention = false;      // latent attention of the keys that an indexer chooses
  bool compressed_attention = false;  // a window, and entries that stand for several tokens
  bool linear_attention = false;
  bool state_space = false;
  VisionTower vision = VisionTower::none;
  BiasFacts biases;
  std::optional<ExpertFacts> experts;
  // config.json.
  std::string_view alias;  // a second model_type, of models with the same classes
  ConfigKeys keys = ConfigKeys::common;
  std::string_view activation_key = "hidden_act";
  std::string_view ffn_key = "intermediate_size";
  std::string_view epsilon_key = "rms_norm_eps";
  std::string_view qk_norm_key;  // states qk_norm; empty = no key does
  bool tied = false;             // default of tie_word_embeddings
  TieKey tie_key = TieKey::outside;
  std::string_view language_model;  // its class where that is no ...ForCausalLM
  std::int64_t default_positions = 0;
  double default_epsilon = 1e-6;
  std::int64_t default_query_heads = 0, default_vocab = 0;  // 0 = the file must state them
  std::int64_t default_kv_heads = 0;                        // 0 = as many as query heads
  bool null_kv_heads = true;          // null = as many as query heads; false = null is refused
  std::int64_t default_head_dim = 0;  // 0 = hidden_size / num_attention_heads
  bool head_dim_key = true;           // false: it is that quotient, whatever head_dim says
  WindowRule window = WindowRule::none;
  std::int64_t default_window = 0;
  std::int64_t window_pattern = 2;  // of WindowRule::patterned: every n-th layer sees all
  RopeFacts rope;
  std::optional<std::int64_t> default_mtp_layers;  // nullopt = the keys are not read
  ModuleFacts modules;
  // Checkpoint and Megatron-LM.
  TensorNames tensors;
  Signature signature;
};

const FamilyFacts& facts_of(ModelFamily family);
/// By name or alias; nullptr for an unknown model_type.
const FamilyFacts* facts_of(std::string_view model_type);

/// The family whose checkpoints have the model's parts and no others (its own `family` is not
/// looked at); nullopt = none has.
std::optional<ModelFamily> family_with_parts_of(const ModelSpec& model);

}  // namespace tessera
