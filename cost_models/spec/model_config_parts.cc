// Families, experts, latent attention and the vision tower of a config.json.
#include <array>
#include <initializer_list>
#include <string>
#include <utility>

#include "cost_models/spec/model_config.h"

namespace tessera {
namespace {

using enum ModelFamily;

// Keys and defaults of transformers 5.17, models/*/configuration_*.py.
constexpr std::array<FamilyFacts, kEveryFamily.size()> kFacts{{
    {.family = llama, .default_positions = 2048},
    {.family = mistral,
     .window = WindowRule::always,
     .default_window = 4096,
     .default_kv_heads = 8,
     .default_positions = 131072},
    {.family = qwen2,
     .window = WindowRule::by_switch,
     .default_window = 4096,
     .default_kv_heads = 32,
     .default_positions = 32768,
     .qkv_bias = true},
    {.family = qwen3,
     .window = WindowRule::by_switch,
     .default_window = 4096,
     .default_kv_heads = 32,
     .default_head_dim = 128,
     .default_positions = 32768,
     .qk_norm = true},
    {.family = mixtral,
     .window = WindowRule::always,
     .default_kv_heads = 8,
     .default_positions = 131072,
     .default_theta = 1e6,
     .default_epsilon = 1e-5},
    {.family = qwen2_moe,
     .window = WindowRule::switch_mixed,
     .default_window = 4096,
     .default_kv_heads = 16,
     .default_positions = 32768,
     .qkv_bias = true},
    {.family = qwen3_moe,
     .window = WindowRule::by_switch,
     .default_window = 4096,
     .default_kv_heads = 4,
     .default_positions = 32768,
     .qk_norm = true},
    {.family = deepseek_v2, .default_positions = 2048},
    {.family = deepseek_v3, .default_positions = 4096},
    {.family = gpt2,
     .default_positions = 1024,
     .default_epsilon = 1e-5,
     .norm = NormKind::layer_norm,
     .mlp = MlpKind::gelu},
    {.family = gpt_oss,
     .window = WindowRule::alternating,
     .default_window = 128,
     .default_kv_heads = 8,
     .default_head_dim = 64,
     .default_positions = 131072,
     .default_theta = 150000.0,
     .default_epsilon = 1e-5,
     .qkv_bias = true,
     .mlp = MlpKind::clamped_swiglu},
    {.family = nemotron,
     .default_positions = 4096,
     .default_epsilon = 1e-5,
     .norm = NormKind::layer_norm_1p,
     .mlp = MlpKind::squared_relu},
    {.family = qwen2_5_vl,
     .window = WindowRule::switch_mixed,
     .default_window = 4096,
     .default_kv_heads = 8,
     .default_positions = 32768,
     .default_theta = 1e6,
     .default_epsilon = 1e-5,
     .qkv_bias = true},
}};

/// The first of `names` that the file has, or the first.
const char* present(const ObjectReader& reader, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (reader.has(name)) return name;
  }
  return *names.begin();
}

/// Qwen: a layer has experts unless mlp_only_layers names it or decoder_sparse_step skips it.
void read_sparse_step(ObjectReader& reader, const ModelSpec& spec, MoeSpec& moe) {
  std::int64_t step = 1;
  reader.optional("decoder_sparse_step", step, kConfigSize);
  std::vector<std::int64_t> dense;
  const Node* node = reader.find("mlp_only_layers");
  if (node != nullptr && !node->is(Node::Kind::null)) {
    reader.list("mlp_only_layers", dense, Whole{.least = 0, .most = spec.layers - 1});
  }
  if (step < 1) return;
  std::vector<bool> plain(static_cast<std::size_t>(spec.layers), false);
  for (const std::int64_t layer : dense) {
    if (layer >= 0 && layer < spec.layers) plain[static_cast<std::size_t>(layer)] = true;
  }
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
    if (plain[static_cast<std::size_t>(layer)] || (layer + 1) % step != 0) {
      moe.dense_layers.push_back(layer);
    }
  }
}

void read_deepseek_experts(ObjectReader& reader, const ModelSpec& spec, MoeSpec& moe) {
  const bool v3 = spec.family == deepseek_v3;
  std::int64_t shared = v3 ? 1 : 2, dense = v3 ? 3 : 0, frequency = 1;
  if (const Node* node = reader.find("n_shared_experts")) {
    if (node->is(Node::Kind::null)) shared = 0;
  }
  reader.optional("n_shared_experts", shared, Whole{.least = 0, .most = 1 << 16});
  moe.shared_ffn = shared * moe.expert_ffn;
  reader.optional("first_k_dense_replace", dense, kNotNegative);
  for (std::int64_t layer = 0; layer < dense && layer < spec.layers; ++layer) {
    moe.dense_layers.push_back(layer);
  }
  reader.optional("moe_layer_freq", frequency);
  if (frequency != 1) reader.refuse("moe_layer_freq", "1: experts in every later layer");
  moe.score = v3 ? RouterScore::sigmoid : RouterScore::softmax;
  std::string score(name_of(moe.score));
  reader.optional("scoring_func", score);
  if (score != name_of(moe.score)) {
    reader.refuse("scoring_func", std::string(name_of(moe.score)) + ", as this architecture has");
  }
  moe.correction_bias = moe.normalised = v3;
  reader.optional("norm_topk_prob", moe.normalised);
  moe.scale = v3 ? 2.5 : 1.0;
  reader.optional("routed_scaling_factor", moe.scale, kAboveZero);
  std::string method = v3 ? "noaux_tc" : "greedy";
  reader.optional("topk_method", method);
  if (method == "greedy") return;  // no groups
  moe.groups = v3 ? 8 : 1;
  moe.groups_per_token = v3 ? 4 : 1;
  reader.optional("n_group", moe.groups, kConfigSize);
  reader.optional("topk_group", moe.groups_per_token, kConfigSize);
}

void check_experts(ObjectReader& reader, const ModelSpec& spec, const MoeSpec& moe,
                   const char* experts_key) {
  if (moe.experts_per_token > moe.experts) {
    reader.refuse("num_experts_per_tok",
                  "at most as many as there are experts (" + std::to_string(moe.experts) + ")");
  }
  if (moe.experts > 0 && moe.experts % moe.groups != 0) {
    reader.refuse("n_group", "a divisor of " + std::string(experts_key) + " (" +
                                 std::to_string(moe.experts) + ")");
  }
  if (moe.groups_per_token > moe.groups) {
    reader.refuse("topk_group", "at most n_group (" + std::to_string(moe.groups) + ")");
  }
  if (static_cast<std::int64_t>(moe.dense_layers.size()) == spec.layers && spec.layers > 0) {
    reader.refuse(experts_key, "experts in one layer at least",
                  "every layer of this config has a plain MLP");
  }
}

}  // namespace

const FamilyFacts* facts_of(std::string_view model_type) {
  for (const FamilyFacts& facts : kFacts) {
    if (name_of(facts.family) == model_type) return &facts;
  }
  return nullptr;
}

void read_moe(ObjectReader& reader, ModelSpec& spec) {
  const bool deepseek = spec.family == deepseek_v2 || spec.family == deepseek_v3;
  const bool qwen = spec.family == qwen2_moe || spec.family == qwen3_moe;
  if (!deepseek && !qwen && spec.family != mixtral && spec.family != gpt_oss) return;
  constexpr Whole kCount{.least = 1, .most = 1 << 16};
  MoeSpec moe;
  const char* experts =
      deepseek ? present(reader, {"n_routed_experts", "num_local_experts", "num_experts"})
      : qwen   ? present(reader, {"num_experts", "num_local_experts"})
               : present(reader, {"num_local_experts", "num_experts"});
  reader.required(experts, moe.experts, kCount);
  reader.required(present(reader, {"num_experts_per_tok", "experts_per_token"}),
                  moe.experts_per_token, kCount);
  moe.expert_ffn = spec.ffn;
  if (deepseek || qwen) reader.required("moe_intermediate_size", moe.expert_ffn, kConfigSize);
  moe.normalised = spec.family == mixtral || spec.family == gpt_oss;
  moe.router_bias = spec.family == gpt_oss;
  if (qwen) {
    reader.optional("norm_topk_prob", moe.normalised);
    read_sparse_step(reader, spec, moe);
  }
  if (spec.family == qwen2_moe) {
    reader.required("shared_expert_intermediate_size", moe.shared_ffn, kConfigSize);
    moe.shared_gate = true;
  }
  if (deepseek) read_deepseek_experts(reader, spec, moe);
  check_experts(reader, spec, moe, experts);
  spec.moe = std::move(moe);
  if (spec.family == deepseek_v3) {
    spec.mtp_layers = 1;
    reader.optional(present(reader, {"num_nextn_predict_layers", "num_mtp_layers"}),
                    spec.mtp_layers, Whole{.least = 0, .most = 1 << 10});
  }
}

void read_mla(ObjectReader& reader, ModelSpec& spec) {
  MlaSpec mla;
  const Node* compressed = reader.find("q_lora_rank");
  if (compressed == nullptr) {
    reader.refuse("q_lora_rank", "a size, or null where queries are not compressed");
  }
  reader.optional("q_lora_rank", mla.q_lora_rank, kConfigSize);
  reader.required("kv_lora_rank", mla.kv_lora_rank, kConfigSize);
  reader.required("qk_nope_head_dim", mla.qk_nope_head_dim, kConfigSize);
  reader.required("qk_rope_head_dim", mla.qk_rope_head_dim, kConfigSize);
  reader.required("v_head_dim", mla.v_head_dim, kConfigSize);
  if (mla.qk_rope_head_dim % 2 != 0) {
    reader.refuse("qk_rope_head_dim", "an even number (rotary pairs)");
  }
  spec.head_dim = mla.qk_nope_head_dim + mla.qk_rope_head_dim;
  spec.kv_heads = spec.query_heads;
  spec.mla = mla;
}

void read_vision(ObjectReader& reader, ModelSpec& spec) {
  std::optional<ObjectReader> tower = reader.object("vision_config");
  if (!tower) return;
  VisionSpec vision{.channels = 3, .patch = 14, .temporal_patch = 2, .merge = 2, .window = 112};
  tower->required("depth", vision.layers, kConfigSize);
  tower->required("hidden_size", vision.hidden, kConfigSize);
  tower->required("intermediate_size", vision.ffn, kConfigSize);
  tower->required("num_heads", vision.heads, kConfigSize);
  tower->required("out_hidden_size", vision.output, kConfigSize);
  tower->optional(present(*tower, {"in_channels", "in_chans"}), vision.channels, kConfigSize);
  tower->optional("patch_size", vision.patch, kConfigSize);
  tower->optional("temporal_patch_size", vision.temporal_patch, kConfigSize);
  tower->optional("spatial_merge_size", vision.merge, kConfigSize);
  tower->optional("window_size", vision.window, kConfigSize);
  vision.full_attention_layers = {7, 15, 23, 31};
  if (tower->has("fullatt_block_indexes")) {
    vision.full_attention_layers.clear();
    tower->list("fullatt_block_indexes", vision.full_attention_layers, kNotNegative);
  }
  if (vision.heads > 0 && vision.hidden % vision.heads != 0) {
    tower->refuse("hidden_size", "a multiple of num_heads");
  }
  if (vision.output != spec.hidden) {
    tower->refuse("out_hidden_size",
                  "the language model's hidden size (" + std::to_string(spec.hidden) + ")");
  }
  spec.vision = std::move(vision);
}

}  // namespace tessera
