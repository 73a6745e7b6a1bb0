// Which family a description without a name is of: the first whose parts it states.
#include "cost_models/spec/families.h"

namespace tessera {
namespace {

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
  return !asked.by_name && model.norm == facts.norm && model.mlp == facts.mlp &&
         model.learned_positions == facts.learned_positions &&
         model.attention_sinks == facts.attention_sinks &&
         model.mla.has_value() == facts.latent_attention &&
         model.vision.has_value() == (facts.vision != VisionTower::none) && !model.linear &&
         !model.indexer && !model.compressed && !model.state_space &&
         model.moe.has_value() == facts.experts.has_value() && has_biases(asked.biases, model) &&
         allows(asked.qk_norm, model.qk_norm) &&
         allows(asked.sliding_window, model.sliding_window > 0) &&
         (!model.moe || has_experts(facts, *model.moe));
}

}  // namespace

std::optional<ModelFamily> family_with_parts_of(const ModelSpec& model) {
  for (const ModelFamily family : kEveryFamily) {
    if (has_parts(facts_of(family), model)) return family;
  }
  return std::nullopt;
}

}  // namespace tessera
