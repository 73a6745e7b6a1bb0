// verl 0.9.1 with torchtitan (workers/engine/torchtitan): FSDP2 with tensor parallelism and whole
// experts (torchtitan's distributed/parallel_dims.py). Stage 2 is reshard_after_forward = never. It
// has no stages (model_forward_step raises NotImplementedError), no critic (it registers a language
// model alone) and no adapters. Its context parallelism does not run: prepare_model_outputs cuts
// the log-probabilities of a rank's part of the tokens by the offsets of whole sequences.
#include <algorithm>
#include <array>

#include "planner/engines/rows.h"

namespace tessera {
namespace {

// Models that it has by name; verl takes the one with these sizes
// (derive_torchtitan_name_and_flavor). The families are those of verl's table that torchtitan still
// has, in its models/*/__init__.py.
struct Flavor {
  ModelFamily family;
  std::int64_t hidden, layers, vocab;
};
constexpr std::array<Flavor, 18> kFlavors{{
    {ModelFamily::llama, 2048, 16, 128256},
    {ModelFamily::llama, 3072, 28, 128256},
    {ModelFamily::llama, 4096, 32, 128256},
    {ModelFamily::llama, 8192, 80, 128256},
    {ModelFamily::llama, 16384, 126, 128256},
    {ModelFamily::qwen3, 1024, 28, 151936},
    {ModelFamily::qwen3, 2048, 28, 151936},
    {ModelFamily::qwen3, 2560, 36, 151936},
    {ModelFamily::qwen3, 4096, 36, 151936},
    {ModelFamily::qwen3, 5120, 40, 151936},
    {ModelFamily::qwen3, 5120, 64, 151936},
    {ModelFamily::qwen3_moe, 2048, 48, 151936},
    {ModelFamily::qwen3_moe, 4096, 94, 151936},
    {ModelFamily::deepseek_v3, 2048, 27, 102400},
    {ModelFamily::deepseek_v3, 5120, 60, 102400},
    {ModelFamily::deepseek_v3, 7168, 61, 129280},
    {ModelFamily::gpt_oss, 2880, 24, 201088},
    {ModelFamily::gpt_oss, 2880, 36, 201088},
}};

std::string refused_model(const ModelSpec& model) {
  const bool known = std::any_of(kFlavors.begin(), kFlavors.end(), [&](const Flavor& each) {
    return each.family == model.family && each.hidden == model.hidden &&
           each.layers == model.layers && each.vocab == model.vocab;
  });
  if (known) return {};
  std::string sizes;
  for (const Flavor& each : kFlavors) {
    if (each.family != model.family) continue;
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(each.hidden) + "/" +
             std::to_string(each.layers) + "/" + std::to_string(each.vocab);
  }
  return "hidden/layers/vocab " + std::to_string(model.hidden) + "/" +
         std::to_string(model.layers) + "/" + std::to_string(model.vocab) +
         "; torchtitan has of this family " + sizes;
}

// Cut as the rest is, or whole ones over ranks that share weights.
std::string refused_experts(const ModelSpec& model, const ParallelLayout& layout) {
  if (!model.moe && layout.ep == 1) return {};
  const std::string degrees = "ep " + std::to_string(layout.ep) + ", etp " +
                              std::to_string(layout.etp) + " with tp " + std::to_string(layout.tp);
  if (!model.moe) return degrees + " of a model without experts";
  if (layout.ep == 1) {
    return layout.etp == layout.tp ? std::string()
                                   : degrees + "; without ep experts are cut as the rest is";
  }
  const int shards = layout.tp * layout.cp * sharding_replicas(layout);
  if (layout.etp == 1 && model.moe->experts % layout.ep == 0 && shards % layout.ep == 0) return {};
  return degrees + " for " + std::to_string(model.moe->experts) + " experts over " +
         std::to_string(shards) + " ranks (tp x cp x shards); etp is 1 and ep divides both";
}

}  // namespace

Engine verl_torchtitan_engine() {
  Engine engine = library_engine("verl-torchtitan", "0.9.1");
  add_verl_loop(engine);
  add_verl_fsdp(engine);
  engine.traits.shards.frozen_fetched = true;  // forward_only (torchtitan/transformer_impl.py)
  Capabilities& can = engine.capabilities;
  can.roles = {Role::actor, Role::rollout, Role::reference, Role::reward};
  can.lora = false;
  can.training.recompute = {Recompute::none, Recompute::selective, Recompute::full};
  can.training.context_parallel = false;
  can.training.sequence_parallel = can.training.expert_parallel = true;
  can.training.experts = refused_experts;
  can.training.heads = HeadRule::all_heads;
  can.offload.reference_on_host = true;  // forward_only: enable_cpu_offload
  can.params = {DType::bf16};
  using enum ModelFamily;
  can.families = {llama, qwen3, qwen3_moe, deepseek_v3, gpt_oss};
  can.model = refused_model;
  // Blocks are compiled (use_torch_compile).
  engine.traits.kernels.elementwise = ElementwiseKernels::remade;
  engine.traits.kernels.fused_activation = true;
  return engine;
}

}  // namespace tessera
