// The modules that Megatron-Core runs again where recomputation is selective
// (TransformerConfig.recompute_modules, core 0.16): what exports write is what prices count.
//
// Pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "cost_models/spec/model_spec.h"

namespace tessera {

/// In the order in which they are written. A dense MLP's product has no module of its own ("mlp" is
/// the whole MLP), and attention's core saves nothing that flash attention keeps: it stands where
/// nothing else does, as Megatron-Core's default.
inline std::vector<std::string_view> recompute_modules(const ModelSpec& model) {
  std::vector<std::string_view> modules;
  if (model.moe) modules.emplace_back("moe_act");      // the experts' gated product
  if (model.mla) modules.emplace_back("mla_up_proj");  // latent attention's projections to heads
  if (modules.empty()) modules.emplace_back("core_attn");
  return modules;
}

}  // namespace tessera
