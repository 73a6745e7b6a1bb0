#include "cost_models/spec/families.h"

#include <iterator>

#include "cost_models/spec/enum_names.h"

namespace tessera {
namespace {

using enum ModelFamily;

constexpr FamilyFacts kFamilies[] = {
    {.family = llama,
     .name = "llama",
     .biases = {.attention_key = true, .mlp_key = true},
     .default_positions = 2048,
     .signature = {.biases = BiasPlaces::none_or_all, .qk_norm = false, .sliding_window = false}},
    {.family = mistral,
     .name = "mistral",
     .default_positions = 131072,
     .default_kv_heads = 8,
     .null_kv_heads = false,
     .window = WindowRule::always,
     .default_window = 4096,
     .signature = {.biases = BiasPlaces::none_or_all, .qk_norm = false, .sliding_window = true}},
    {.family = qwen2,
     .name = "qwen2",
     .biases = {.qkv = true},
     .default_positions = 32768,
     .default_kv_heads = 32,
     .window = WindowRule::if_used,
     .default_window = 4096,
     .signature = {.biases = BiasPlaces::qkv, .qk_norm = false}},
    {.family = qwen3,
     .name = "qwen3",
     .qk_norm = true,
     .biases = {.attention_key = true},
     .default_positions = 32768,
     .default_kv_heads = 32,
     .default_head_dim = 128,
     .window = WindowRule::if_used,
     .default_window = 4096,
     .signature = {.qk_norm = true}},
    {.family = mixtral,
     .name = "mixtral",
     .experts = ExpertFacts{.normalised = true},
     .default_positions = 131072,
     .default_epsilon = 1e-5,
     .default_kv_heads = 8,
     .null_kv_heads = false,
     .window = WindowRule::always,
     .rope = {.default_theta = 1e6},
     .modules = {.wide_scores = true},
     .tensors = {.expert_block = "block_sparse_moe.", .gate = "w1", .up = "w3", .down = "w2"},
     .signature = {.biases = BiasPlaces::none,
                   .qk_norm = false,
                   .score = RouterScore::softmax,
                   .plain_choice = true,
                   .every_layer = true,
                   .shared = SharedExpert::none}},
    {.family = qwen2_moe,
     .name = "qwen2_moe",
     .biases = {.qkv = true, .qkv_key = true},
     .experts = ExpertFacts{.keys = ExpertKeys::qwen, .gated_shared = true},
     .default_positions = 32768,
     .default_kv_heads = 16,
     .null_kv_heads = false,
     .window = WindowRule::if_used_by_layer,
     .default_window = 4096,
     .signature = {.score = RouterScore::softmax,
                   .plain_choice = true,
                   .shared = SharedExpert::gated}},
    {.family = qwen3_moe,
     .name = "qwen3_moe",
     .qk_norm = true,
     .biases = {.attention_key = true},
     .experts = ExpertFacts{.keys = ExpertKeys::qwen},
     .default_positions = 32768,
     .default_kv_heads = 4,
     .null_kv_heads = false,
     .window = WindowRule::if_used_in_all,
     .default_window = 4096,
     .signature = {.qk_norm = true,
                   .score = RouterScore::softmax,
                   .plain_choice = true,
                   .shared = SharedExpert::none}},
    {.family = deepseek_v2,
     .name = "deepseek_v2",
     .latent_attention = true,
     .biases = {.attention_key = true,
                .mlp_key = true,
                .mlp_refused = "false, as DeepSeek-V2 was published"},
     .experts = ExpertFacts{.keys = ExpertKeys::deepseek, .default_shared = 2},
     .default_positions = 2048,
     .modules = {.cast_router = true, .wide_scores = true, .unnormalised = true},
     .signature = {.score = RouterScore::softmax}},
    {.family = deepseek_v3,
     .name = "deepseek_v3",
     .latent_attention = true,
     .biases = {.attention_key = true},
     .experts = ExpertFacts{.keys = ExpertKeys::deepseek,
                            .normalised = true,
                            .score = RouterScore::sigmoid,
                            .correction_bias = true,
                            .default_shared = 1,
                            .default_dense = 3,
                            .default_groups = 8,
                            .default_groups_per_token = 4,
                            .default_scale = 2.5,
                            .default_method = "noaux_tc"},
     .default_positions = 4096,
     .default_mtp_layers = 1,
     .modules = {.cast_router = true},
     .signature = {.score = RouterScore::sigmoid}},
    {.family = gpt2,
     .name = "gpt2",
     .norm = NormKind::layer_norm,
     .mlp = MlpKind::gelu,
     .learned_positions = true,
     .biases = {.qkv = true, .output = true, .mlp = true},
     .keys = ConfigKeys::gpt2,
     .language_model = "GPT2LMHeadModel",
     .default_positions = 1024,
     .default_epsilon = 1e-5,
     .tensors = {.layer = LayerTensors::conv1d,
                 .embedding = "transformer.wte.weight",
                 .layers = "transformer.h.",
                 .last_norm = "transformer.ln_f",
                 .value_head = "classifier.weight",
                 .value_head_bias = "classifier.bias"},
     .signature = {.biases = BiasPlaces::all}},
    {.family = gpt_oss,
     .name = "gpt_oss",
     .mlp = MlpKind::clamped_swiglu,
     .attention_sinks = true,
     .biases = {.qkv = true, .mlp = true, .attention_key = true},
     .experts = ExpertFacts{.normalised = true, .router_bias = true},
     .default_positions = 131072,
     .default_epsilon = 1e-5,
     .default_kv_heads = 8,
     .default_head_dim = 64,
     .window = WindowRule::alternating,
     .default_window = 128,
     .rope = {.default_theta = 150000.0,
              .yarn = YarnDefault{.factor = 32.0, .original_positions = 4096, .truncate = false}},
     .modules = {.wide_norm = true, .half_rotary = true},
     .tensors = {.experts = ExpertTensors::stacked},
     .signature = {.biases = BiasPlaces::all}},
    {.family = nemotron,
     .name = "nemotron",
     .norm = NormKind::layer_norm_1p,
     .mlp = MlpKind::squared_relu,
     .biases = {.attention_key = true, .mlp_key = true},
     .default_positions = 4096,
     .default_epsilon = 1e-5,
     .rope = {.rotated_fraction = 0.5}},
    {.family = qwen2_5_vl,
     .name = "qwen2_5_vl",
     .vision = true,
     .biases = {.qkv = true},
     .default_positions = 32768,
     .default_epsilon = 1e-5,
     .default_kv_heads = 8,
     .window = WindowRule::if_used_by_layer,
     .default_window = 4096,
     .rope = {.default_theta = 1e6, .sections = true}},
};

static_assert(has_enumerators<ModelFamily, std::size(kFamilies)>(), "a ModelFamily has no row");
static_assert(std::size(kFamilies) == kEveryFamily.size());

constexpr bool rows_stand_in_their_order() {
  for (std::size_t i = 0; i < kEveryFamily.size(); ++i) {
    if (kFamilies[i].family != kEveryFamily[i] || kFamilies[i].name.empty()) return false;
  }
  return true;
}
static_assert(rows_stand_in_their_order(), "a row is not in its enumerator's place");

bool allows(const std::optional<bool>& asked, bool has) { return !asked || *asked == has; }

bool has_biases(BiasPlaces places, const ModelSpec& model) {
  const BiasPlaces has = model.output_bias ? BiasPlaces::all
                         : model.qkv_bias  ? BiasPlaces::qkv
                                           : BiasPlaces::none;
  return (static_cast<unsigned>(places) & static_cast<unsigned>(has)) != 0;
}

bool has_experts(const FamilyFacts& facts, const MoeSpec& moe) {
  const Signature& asked = facts.signature;
  if (moe.router_bias != facts.experts->router_bias) return false;
  if (asked.score && *asked.score != moe.score) return false;
  if (asked.plain_choice && (moe.correction_bias || moe.groups > 1)) return false;
  if (asked.every_layer && !moe.dense_layers.empty()) return false;
  if (asked.shared == SharedExpert::any) return true;
  return asked.shared == SharedExpert::gated ? moe.shared_gate
                                             : !moe.shared_gate && moe.shared_ffn == 0;
}

bool has_parts(const FamilyFacts& facts, const ModelSpec& model) {
  const Signature& asked = facts.signature;
  return model.norm == facts.norm && model.mlp == facts.mlp &&
         model.learned_positions == facts.learned_positions &&
         model.attention_sinks == facts.attention_sinks &&
         model.mla.has_value() == facts.latent_attention &&
         model.vision.has_value() == facts.vision &&
         model.moe.has_value() == facts.experts.has_value() && has_biases(asked.biases, model) &&
         allows(asked.qk_norm, model.qk_norm) &&
         allows(asked.sliding_window, model.sliding_window > 0) &&
         (!model.moe || has_experts(facts, *model.moe));
}

}  // namespace

std::string_view name_of(ModelFamily family) { return facts_of(family).name; }

const FamilyFacts& facts_of(ModelFamily family) {
  return kFamilies[static_cast<std::size_t>(family)];
}

const FamilyFacts* facts_of(std::string_view model_type) {
  for (const FamilyFacts& facts : kFamilies) {
    if (facts.name == model_type) return &facts;
  }
  return nullptr;
}

std::optional<ModelFamily> family_with_parts_of(const ModelSpec& model) {
  for (const FamilyFacts& facts : kFamilies) {
    if (has_parts(facts, model)) return facts.family;
  }
  return std::nullopt;
}

}  // namespace tessera
