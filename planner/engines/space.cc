#include "planner/engines/space.h"

#include <limits>
#include <string>
#include <vector>

namespace tessera {
namespace {

// capabilities_of's Problem, as an answer to the option that also takes "any".
void refuse_engine(std::string_view engine, Problem& problem) {
  std::vector<std::string> names = engine_names();
  names.emplace_back(kAnyEngine);
  problem.file = "--engine";
  problem.place.clear();
  problem.expected += " or " + std::string(kAnyEngine);
  problem.hint = did_you_mean(engine, names);
}

}  // namespace

std::optional<Capabilities> space_of(std::string_view engine, Problems& problems) {
  if (engine != kAnyEngine) {
    auto known = capabilities_of(engine, problems);
    if (!known) refuse_engine(engine, problems.back());
    return known;
  }
  Capabilities table;
  table.engine = kAnyEngine;
  table.zero = {0, 1, 2, 3};
  table.recompute = {Recompute::none, Recompute::selective, Recompute::full};
  table.most_rollout_pp = std::numeric_limits<int>::max();
  table.context_parallel = table.expert_parallel = table.virtual_stages = true;
  table.fully_sharded = table.sequence_parallel = table.offload = table.unmap = true;
  table.own_pool_lags = {0, 1};
  table.families = {kEveryFamily.begin(), kEveryFamily.end()};
  table.params = {DType::fp32, DType::bf16, DType::fp16};
  return table;
}

// Rows of logits that FusedLinearForPPOFunction makes at a time (its chunk_size).
constexpr std::int64_t kFusedLogitRows = 512;

EngineTraits traits_of(std::string_view engine, EngineChoices choices) {
  EngineTraits traits;
  traits.overlapped_shards = traits.overlapped_gradients = true;
  if (engine == "tessera") {
    traits.copied_shards = traits.reduces_every_batch = traits.refills_alone = true;
    traits.overlapped_tensor = traits.overlapped_parameters = traits.host_optimizer = true;
    return traits;
  }
  traits.graphed_decode = true;
  traits.fused_loss = choices.fused_loss;
  traits.logit_rows = choices.fused_loss ? kFusedLogitRows : 0;
  traits.host_optimizer = choices.host_optimizer;
  traits.reduces_in_place = engine == "verl-megatron" || engine == "megatron";
  // verl's Megatron reduces gradients after the last backward pass and gathers parameters after the
  // step unless override_ddp_config says otherwise (verl 0.9.1, utils/megatron_utils.py).
  const bool exposes = engine == "verl-megatron";
  traits.overlapped_gradients = traits.overlapped_replicas = !exposes;
  traits.overlapped_parameters = !exposes;
  traits.scattered_hops = engine != "verl";
  if (engine == "verl") traits.loss = LossKernel::in_place;
  traits.context_shards = engine == "verl";     // one mesh of all GPUs, Ulysses' groups inside
  traits.master_parameters = engine == "verl";  // model_dtype fp32, mixed precision
  traits.fresh_gradients = engine == "verl";
  traits.keeps_cache = engine == "verl" || engine == "verl-megatron";
  traits.streamed_optimizer = !traits.keeps_cache;
  return traits;
}

}  // namespace tessera
