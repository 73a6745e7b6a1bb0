// Layouts of training roles from verl's keys: FSDP with Ulysses, and Megatron.
#include <algorithm>
#include <numeric>

#include "planner/interop/config/stage_text.h"
#include "planner/interop/verl/verl_import.h"

namespace tessera {
namespace {

// The actor's outer key wins where it is above one (FSDPActorConfig.__post_init__); the critic's is
// not read.
int ulysses_of(const VerlImport& in, const std::string& block, const std::string& outer_key,
               Role role) {
  const std::int64_t own = in.integer(block + ".ulysses_sequence_parallel_size", 1);
  const std::int64_t inherited =
      role == Role::reference
          ? in.integer("actor_rollout_ref.actor.ulysses_sequence_parallel_size", 1)
          : 1;
  const std::int64_t outer = role != Role::critic ? in.integer(outer_key, inherited) : 1;
  return static_cast<int>(std::min<std::int64_t>(outer > 1 ? outer : own, 1 << 20));
}

// The reference's override_transformer_config is the actor's.
std::string transformer_config(const std::string& block) {
  const bool reference = block.find(".ref.") != std::string::npos;
  return (reference ? "actor_rollout_ref.actor.megatron" : block) + ".override_transformer_config.";
}

// pipeline_model_parallel_layout states them all.
std::vector<LayerRange> stated_stages(const VerlImport& in, const std::string& key,
                                      const std::string& text, const ModelSpec& model,
                                      std::int64_t chunks) {
  const auto layers = stage_layers(text);
  if (layers && std::ssize(*layers) == chunks &&
      std::accumulate(layers->begin(), layers->end(), std::int64_t{0}) == model.layers) {
    return stage_ranges(*layers);
  }
  in.refuse(key, "'" + text + "'",
            std::to_string(model.layers) + " decoder layers (t) in " + std::to_string(chunks) +
                " stages (|)",
            "as in 'Et*6|t*6|t*5L'");
  return {};
}

std::vector<LayerRange> stages_of(const VerlImport& in, const std::string& block,
                                  const ModelSpec& model, const ParallelLayout& layout) {
  const std::string prefix = transformer_config(block);
  const std::int64_t chunks = std::int64_t{layout.pp} * layout.vpp;
  const std::string text = in.text(prefix + "pipeline_model_parallel_layout", "");
  if (!text.empty()) {
    return stated_stages(in, prefix + "pipeline_model_parallel_layout", text, model, chunks);
  }
  const std::int64_t first = in.integer(prefix + "num_layers_in_first_pipeline_stage", 0);
  const std::int64_t last = in.integer(prefix + "num_layers_in_last_pipeline_stage", 0);
  const auto layers = even_but_for_ends(model.layers, chunks, first, last);
  if (!layers || ((first > 0 || last > 0) && layout.vpp > 1)) {
    in.refuse(block + ".pipeline_model_parallel_size", std::to_string(layout.pp),
              "stages of equally many of the " + std::to_string(model.layers) + " layers",
              "num_layers_in_first_pipeline_stage and num_layers_in_last_pipeline_stage make "
              "uneven ones, or pipeline_model_parallel_layout");
    return {};
  }
  return stage_ranges(*layers);
}

ParallelLayout fsdp_layout(VerlImport& in, const std::string& block, const std::string& ulysses_key,
                           Role role) {
  ParallelLayout layout;
  layout.cp = ulysses_of(in, block, ulysses_key, role);
  if (in.world % layout.cp != 0) {
    in.refuse(ulysses_key, std::to_string(layout.cp),
              "a divisor of the " + std::to_string(in.world) + " GPUs");
    return layout;
  }
  layout.ulysses = layout.cp > 1;
  const int dp = static_cast<int>(in.world / layout.cp);
  const std::int64_t size = in.integer(block + ".fsdp_size", -1, {.least = -1});
  const bool reshard = in.flag(block + ".reshard_after_forward", true);
  layout.dp = dp;
  if (size == 0) {
    in.refuse(block + ".fsdp_size", "0", "-1 for all GPUs, or at least 1",
              "verl divides the number of GPUs by it");
    return layout;
  }
  if (role == Role::reference && !reshard) {
    in.note(block +
            ".reshard_after_forward=false: under fsdp2 the reference's parameters stay on the "
            "devices beside the update, which no plan counts; true sends them back to the host.");
  }
  if (size == 1 || in.world == 1) return layout;  // nothing is cut
  if (!reshard) {
    layout.zero = 2;
    if (size > 1 && size < in.world) {
      in.note(block + ": hybrid ZeRO-2 is counted as ZeRO-2 over all GPUs.");
    }
    return layout;
  }
  layout.zero = 3;
  layout.dp_shard = dp;
  if (size <= 0 || size >= in.world) return layout;
  if (in.world % size != 0 || size % layout.cp != 0) {
    const bool below = in.world % size == 0 && layout.cp % size == 0;
    in.refuse(block + ".fsdp_size", std::to_string(size),
              "a divisor of the " + std::to_string(in.world) + " GPUs and a multiple of Ulysses' " +
                  std::to_string(layout.cp),
              below ? "verl runs it, but a plan cuts weights over whole Ulysses groups: --set " +
                          block + ".fsdp_size=" + std::to_string(layout.cp) + " is the nearest"
                    : "");
    return layout;
  }
  layout.dp_shard = static_cast<int>(size / layout.cp);
  if (layout.dp_shard == 1) layout.zero = 0;
  return layout;
}

ParallelLayout megatron_layout(const VerlImport& in, const std::string& block,
                               const ModelSpec& model) {
  // The reference inherits the actor's degrees in verl's own YAML.
  const bool inherits = block.find(".ref.") != std::string::npos;
  const std::string actor = "actor_rollout_ref.actor.megatron.";
  const auto size = [&](const std::string& name) {
    const bool own = in.config.has(block + "." + name);  // null stands for one
    return in.degree(block + "." + name, inherits && !own ? in.degree(actor + name, 1) : 1);
  };
  ParallelLayout layout;
  layout.tp = size("tensor_model_parallel_size");
  layout.pp = size("pipeline_model_parallel_size");
  layout.vpp = size("virtual_pipeline_model_parallel_size");
  layout.cp = size("context_parallel_size");
  layout.ep = size("expert_model_parallel_size");
  const std::string etp = "expert_tensor_parallel_size";  // null: tp
  if (model.moe) {
    const int actor_etp = inherits ? in.degree(actor + etp, layout.tp) : layout.tp;
    layout.etp =
        in.degree(block + "." + etp, in.config.has(block + "." + etp) ? layout.tp : actor_etp);
  }
  layout.sequence_parallel = in.flag(block + ".sequence_parallel", true) && layout.tp > 1;
  if (!inherits && in.flag(block + ".use_distributed_optimizer", true)) layout.zero = 1;
  const std::int64_t product = std::int64_t{layout.tp} * layout.pp * layout.cp;
  if (product > in.world || in.world % product != 0) {
    in.refuse(block + ".tensor_model_parallel_size", std::to_string(layout.tp),
              "tp x pp x cp = " + std::to_string(product) + " to divide the " +
                  std::to_string(in.world) + " GPUs");
    return layout;
  }
  layout.dp = static_cast<int>(in.world / product);
  if (std::int64_t{layout.pp} * layout.vpp > model.layers) {
    in.refuse(block + ".pipeline_model_parallel_size", std::to_string(layout.pp),
              "at most one stage per layer, " + std::to_string(model.layers));
    return layout;
  }
  layout.stages = stages_of(in, block, model, layout);
  return layout;
}

}  // namespace

ParallelLayout verl_layout(VerlImport& in, const std::string& block, const std::string& ulysses_key,
                           const ModelSpec& model, Role role) {
  switch (in.config.engine) {
    case VerlEngine::megatron:
      return megatron_layout(in, block, model);
    case VerlEngine::veomni:
      return veomni_layout(in, block, model, role);
    case VerlEngine::torchtitan:
      return torchtitan_layout(in, block, model, role);
    case VerlEngine::fsdp:
      break;
  }
  return fsdp_layout(in, block, ulysses_key, role);
}

}  // namespace tessera
