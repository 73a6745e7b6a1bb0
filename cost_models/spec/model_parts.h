// Parts that some model families have besides plain attention and a gated MLP.
//
// Plain values, parts of a ModelSpec. Sizes count elements, layers count from 0. Field names follow
// the publications; semantics are those of transformers 5.17 (models/*/modeling_*.py).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tessera {

enum class NormKind {
  rms,
  layer_norm,     // mean and variance, weight and bias (GPT-2)
  layer_norm_1p,  // the same with 1 + weight (Nemotron)
};
inline constexpr std::array kEveryNorm{NormKind::rms, NormKind::layer_norm,
                                       NormKind::layer_norm_1p};
std::string_view name_of(NormKind kind);
/// True when a norm has a bias beside its weight.
constexpr bool has_bias(NormKind kind) { return kind != NormKind::rms; }

enum class MlpKind {
  swiglu,          // silu(gate) up
  clamped_swiglu,  // gpt-oss: gate and up clamped, (up + 1) gate sigmoid(1.702 gate)
  gelu,            // one input projection (GPT-2)
  squared_relu,    // one input projection (Nemotron)
  geglu,           // gelu(gate) up, by the tanh form (Gemma)
};
inline constexpr std::array kEveryMlp{MlpKind::swiglu, MlpKind::clamped_swiglu, MlpKind::gelu,
                                      MlpKind::squared_relu, MlpKind::geglu};
std::string_view name_of(MlpKind kind);
/// True when gate and up are two projections of the input.
constexpr bool is_gated(MlpKind kind) {
  return kind != MlpKind::gelu && kind != MlpKind::squared_relu;
}

/// The function that turns a router's logits into scores.
enum class RouterScore {
  softmax,
  sigmoid,
  sqrt_softplus,  // sqrt(ln(1 + exp(x))), DeepSeek-V4
};
inline constexpr std::array kEveryRouterScore{RouterScore::softmax, RouterScore::sigmoid,
                                              RouterScore::sqrt_softplus};
std::string_view name_of(RouterScore score);

/// Mixture of experts. Every expert is an MLP of `expert_ffn` columns of the model's MlpKind.
struct MoeSpec {
  std::int64_t experts = 0;  // routed experts of a layer
  std::int64_t experts_per_token = 0;
  std::int64_t expert_ffn = 0;
  /// Elements of what experts take and give where that is not the hidden state but a projection of
  /// it (Nemotron 3 Super's LatentMoE); 0 = it is.
  std::int64_t latent = 0;
  std::int64_t shared_ffn = 0;  // columns of all shared experts together; 0 = none
  bool shared_gate = false;     // a sigmoid gate on the shared expert (Qwen2-MoE)
  /// Layers with a plain MLP of ModelSpec::ffn columns instead of experts, ascending.
  std::vector<std::int64_t> dense_layers;
  RouterScore score = RouterScore::softmax;
  bool router_bias = false;      // on the logits (gpt-oss)
  bool correction_bias = false;  // on the scores for the choice alone (DeepSeek-V3)
  bool normalised = false;       // chosen scores sum to 1
  double scale = 1.0;            // on the chosen scores (routed_scaling_factor)
  std::int64_t groups = 1, groups_per_token = 1;  // group-limited choice (DeepSeek)
  /// Layers whose experts a table names by the token's id, ascending (DeepSeek-V4); their scores
  /// have no correction.
  std::vector<std::int64_t> hash_layers;

  /// Elements of an expert's input, of a model of this hidden size.
  std::int64_t width(std::int64_t hidden) const { return latent > 0 ? latent : hidden; }
  bool operator==(const MoeSpec&) const = default;
};

/// Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1). A query or key head
/// has qk_nope_head_dim + qk_rope_head_dim = ModelSpec::head_dim elements. A token's cache is
/// kv_lora_rank + qk_rope_head_dim elements per layer, for all heads together.
struct MlaSpec {
  std::int64_t q_lora_rank = 0;  // 0 = queries are not compressed (V2-Lite)
  std::int64_t kv_lora_rank = 0;
  std::int64_t qk_nope_head_dim = 0, qk_rope_head_dim = 0;
  std::int64_t v_head_dim = 0;

  bool operator==(const MlaSpec&) const = default;
};

/// Which keys latent attention looks at: those with the highest scores of a lightning indexer
/// (DeepSeek-V3.2, arXiv:2512.02556, section 2.1). It has query heads of its own, made of the
/// compressed queries, and one key for all of them, which each token adds to the cache.
struct IndexerSpec {
  std::int64_t heads = 0, head_dim = 0;
  std::int64_t chosen = 0;  // keys that a query looks at
  /// Layers without an indexer, which look at the keys chosen in the layer before them, ascending
  /// (GLM-5.2, arXiv:2603.12201).
  std::vector<std::int64_t> shared_layers;

  bool operator==(const IndexerSpec&) const = default;
};

/// Which entries attention of a layer sees beside its window (CompressedAttentionSpec).
enum class LayerEntries {
  none,
  chosen,  // those of `chosen_rate` tokens each that an indexer chooses (CSA)
  all,     // those of `all_rate` tokens each (HCA)
};

/// DeepSeek-V4's attention. One head of keys, which are its values, too, serves all query heads.
/// Every layer sees the keys of a window; most see entries besides, each a weighted sum of the keys
/// of several tokens. Queries are made of compressed ones; the output is projected by groups of
/// heads to `group_rank` elements each, and these to the hidden state.
struct CompressedAttentionSpec {
  std::int64_t query_rank = 0;
  std::int64_t rope_dim = 0;  // of ModelSpec::head_dim
  std::int64_t groups = 0, group_rank = 0;
  std::int64_t window = 0;                              // tokens
  std::int64_t chosen_rate = 0, all_rate = 0;           // tokens that one entry stands for
  std::vector<std::int64_t> chosen_layers, all_layers;  // ascending

  bool operator==(const CompressedAttentionSpec&) const = default;
};

/// Residual streams beside one another (manifold-constrained hyper-connections, DeepSeek-V4).
/// Before attention and before the MLP they are weighed into one; what that gives is dealt out to
/// them, and they are mixed by a matrix that is made doubly stochastic in `iterations` steps.
struct HyperConnectionSpec {
  std::int64_t streams = 0, iterations = 0;

  /// Weights that a token has at each of the two places.
  std::int64_t weights() const { return (2 + streams) * streams; }
  bool operator==(const HyperConnectionSpec&) const = default;
};

/// Linear attention, which stands in the place of attention in the layers that
/// ModelSpec::full_attention_layers does not name: a gated delta net (Yang et al. 2024,
/// arXiv:2412.06464) or, with `block`, lightning attention (MiniMax-01, arXiv:2501.08313). Its
/// memory of a sequence is a matrix of key_dim x value_dim for each value head, and the last
/// `kernel` inputs of a causal convolution over queries, keys and values: no token adds to it.
struct LinearAttentionSpec {
  std::int64_t key_heads = 0, value_heads = 0;  // each key head serves equally many value heads
  std::int64_t key_dim = 0, value_dim = 0;      // elements of a head
  std::int64_t kernel = 0;                      // tokens that the convolution sees; 0 = none
  std::int64_t block = 0;  // lightning attention: tokens whose scores are one product; 0 = a net

  /// Elements of all queries (as many as of all keys), and of all values.
  std::int64_t keys() const { return key_heads * key_dim; }
  std::int64_t values() const { return value_heads * value_dim; }
  bool operator==(const LinearAttentionSpec&) const = default;
};

/// What a layer is that consists of one block (Nemotron-H, arXiv:2504.03624).
enum class LayerBlock { attention, state_space, mlp, experts };
inline constexpr std::array kEveryLayerBlock{LayerBlock::attention, LayerBlock::state_space,
                                             LayerBlock::mlp, LayerBlock::experts};
std::string_view name_of(LayerBlock block);

/// A state-space mixer (Mamba-2: Dao and Gu 2024, arXiv:2405.21060). Each head has a state of
/// head_dim x state elements; the heads of a group read and write it by the same two vectors. Its
/// memory of a sequence is these states, and the last `kernel` inputs of a causal convolution: no
/// token adds to it.
struct StateSpaceSpec {
  std::int64_t heads = 0, head_dim = 0;
  std::int64_t groups = 0, state = 0;
  std::int64_t kernel = 0;  // tokens that the convolution sees
  bool conv_bias = false;
  std::int64_t chunk = 0;  // tokens that a kernel treats as one product

  /// Elements of what the states take in and of the gate; of all groups' vectors, one of the two.
  std::int64_t inner() const { return heads * head_dim; }
  std::int64_t vectors() const { return groups * state; }
  /// Of the convolution's input, and of the first projection's output.
  std::int64_t mixed() const { return inner() + 2 * vectors(); }
  std::int64_t projected() const { return inner() + mixed() + heads; }
  bool operator==(const StateSpaceSpec&) const = default;
};

/// A vision tower: counted, never cut by TP, held by the first stage.
struct VisionSpec {
  std::int64_t layers = 0, hidden = 0, heads = 0, ffn = 0;
  std::int64_t channels = 0, patch = 0, temporal_patch = 0;
  std::int64_t merge = 0;   // merge x merge patches become one token
  std::int64_t output = 0;  // the language model's hidden size
  std::int64_t window = 0;  // pixels; attention of the other layers; 0 = all layers see the image
  std::vector<std::int64_t> full_attention_layers;
  std::int64_t positions = 0;  // of a learned embedding; 0 = none
  /// Layers whose outputs are merged, too, and added in the language model (Qwen3-VL's DeepStack).
  std::vector<std::int64_t> deepstack_layers;
  std::int64_t projector = 0;  // width of the MLP that merges patches (Llama 4); 0 = none

  bool operator==(const VisionSpec&) const = default;
};

}  // namespace tessera
