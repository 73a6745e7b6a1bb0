// verl 0.9.1 with VeOmni (workers/engine/veomni): its own modules of a model under FSDP2, with
// Ulysses, and whole experts dealt to ranks (its distributed/parallel_state.py and
// distributed/torch_parallelize.py). Stage 2 is enable_full_shard = false, stage 0 is fsdp_size =
// 1. It trains no adapters.
#include "planner/engines/rows.h"

namespace tessera {
namespace {

// Experts are whole, and those of a rank cut once more over the ranks of its shards that hold the
// same: these are a multiple of ep.
std::string refused_experts(const ModelSpec& model, const ParallelLayout& layout) {
  if (layout.ep == 1) return {};
  const std::string degree = "ep " + std::to_string(layout.ep);
  if (!model.moe) return degree + " of a model without experts";
  const int shards = layout.cp * sharding_replicas(layout);
  if (model.moe->experts % layout.ep == 0 && shards % layout.ep == 0) return {};
  return degree + " for " + std::to_string(model.moe->experts) + " experts over " +
         std::to_string(shards) + " ranks that share weights; ep divides both";
}

}  // namespace

Engine verl_veomni_engine() {
  Engine engine = library_engine("verl-veomni", "0.9.1");
  add_verl_loop(engine);
  add_verl_fsdp(engine);  // the mesh dp_shard_sp
  Capabilities& can = engine.capabilities;
  can.lora = false;
  can.training.recompute = {Recompute::none, Recompute::full};
  can.training.most_tp = 1;
  can.training.ulysses = true;
  can.training.expert_parallel = true;
  can.training.experts = refused_experts;
  can.params = {DType::bf16};
  // MODELING_REGISTRY of its models/transformers; of other types it raises an error.
  using enum ModelFamily;
  can.families = {llama,    qwen2,   qwen3,       qwen3_moe, deepseek_v3,  gpt_oss,    gemma3_text,
                  seed_oss, qwen3_5, qwen3_5_moe, qwen3_vl,  qwen3_vl_moe, qwen2_5_vl, deepseek_v4};
  engine.traits.pipeline.cut_by_tp = false;
  add_transformers_layers(engine);  // *_implementation: eager
  return engine;
}

}  // namespace tessera
