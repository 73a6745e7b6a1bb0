// verl's keys of the roles that train, and of the reference, by FSDP and by Megatron.
#include <algorithm>
#include <utility>

#include "planner/interop/config/recompute_modules.h"
#include "planner/interop/config/stage_text.h"
#include "planner/interop/verl/verl_writer.h"
#include "planner/plan/hub_name.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

constexpr double kEntropyCoefficient = 0.001;  // of verl's examples; a plan only has whether

std::string_view model_dtype(DType type) {
  return type == DType::fp32 ? "fp32" : type == DType::bf16 ? "bf16" : "fp16";
}

void fsdp_block(VerlWriter& w, const std::string& prefix, const RolePlan& role, bool trained) {
  const ParallelLayout& layout = role.layout;
  const bool hybrid = layout.dp_shard > 1 && layout.dp_replicate() > 1;
  const std::int64_t size = layout.zero == 3 && hybrid ? std::int64_t{layout.dp_shard} * layout.cp
                            : layout.zero == 0 && role.ranks.size() > 1 ? 1
                                                                        : -1;
  w.set(prefix + ".fsdp_size", size,
        size == 1  ? "no sharding"
        : size < 0 ? "all GPUs"
                   : "shards of each replica");
  // FSDP2 leaves what it fetched from the host on the device otherwise, beside the update: 2.9 GiB
  // of a 1.5B reference (benchmarks/results/h200x2-verl-plans.json, grpo_1.5b_kl).
  const bool back_to_host = layout.zero == 0 && !trained && role.offload.parameters;
  w.set(prefix + ".reshard_after_forward", layout.zero == 3 || back_to_host,
        layout.zero == 3 ? "ZeRO-3"
        : back_to_host   ? "parameters leave the device after their pass"
                         : "parameters stay gathered until the backward pass");
  w.set(prefix + ".param_offload", role.offload.parameters);
  if (trained) w.set(prefix + ".optimizer_offload", role.offload.optimizer);
  if (role.no_sync) w.set(prefix + ".use_no_sync_for_gradient_accumulation", true);
  w.text(prefix + ".model_dtype", model_dtype(trained ? role.dtypes.master : role.dtypes.param),
         trained ? "master weights" : "");
  w.text(prefix + ".dtype", verl_dtype(role.dtypes.param), "compute and gathered weights");
}

void stage_keys(VerlWriter& w, const std::string& prefix, const RolePlan& role) {
  const ParallelLayout& layout = role.layout;
  if (layout.pp == 1) return;
  const std::string block = prefix + ".override_transformer_config.";
  const StageEnds ends = stage_ends(layout.stages);
  if (!ends.others_alike || (layout.vpp > 1 && (ends.first > 0 || ends.last > 0))) {
    w.add(block + "pipeline_model_parallel_layout",
          stage_text(layout.stages, held_mtp_layers(w.plan.model_of(role.role))));
    return;
  }
  if (ends.first > 0) w.add(block + "num_layers_in_first_pipeline_stage", ends.first);
  if (ends.last > 0) w.add(block + "num_layers_in_last_pipeline_stage", ends.last);
}

void megatron_block(VerlWriter& w, const std::string& prefix, const RolePlan& role, bool trained) {
  const ParallelLayout& layout = role.layout;
  w.set(prefix + ".tensor_model_parallel_size", layout.tp);
  w.set(prefix + ".pipeline_model_parallel_size", layout.pp);
  // Written even where there are none: the reference would inherit the actor's.
  if (layout.vpp > 1) {
    w.set(prefix + ".virtual_pipeline_model_parallel_size", layout.vpp);
  } else {
    w.out.settings.push_back({prefix + ".virtual_pipeline_model_parallel_size", {}, "", false});
  }
  w.set(prefix + ".context_parallel_size", layout.cp);
  w.set(prefix + ".expert_model_parallel_size", layout.ep);
  const auto& roles = w.plan.roles;
  const bool experts = std::any_of(roles.begin(), roles.end(), [&](const RolePlan& each) {
    return each.role != Role::reward && w.plan.model_of(each.role).moe;
  });
  if (experts) {  // null is tp, and the first role's holds for all
    w.set(prefix + ".expert_tensor_parallel_size", layout.etp);
  }
  w.set(prefix + ".sequence_parallel", layout.sequence_parallel);
  if (trained) w.set(prefix + ".use_distributed_optimizer", layout.zero == 1, "ZeRO-1");
  w.set(prefix + ".param_offload", role.offload.parameters, "gradient buffers go with it");
  if (trained) w.set(prefix + ".optimizer_offload", role.offload.optimizer);
  w.text(prefix + ".dtype", verl_dtype(role.dtypes.param));
  if (!trained) return;  // override_transformer_config is the actor's
  stage_keys(w, prefix, role);
  const std::string block = prefix + ".override_transformer_config.recompute_";
  if (role.recompute == Recompute::full) {
    w.text(block + "granularity", "full");
    w.text(block + "method", "uniform");
    w.set(block + "num_layers", 1);
  } else if (role.recompute == Recompute::selective) {
    w.text(block + "granularity", "selective");
    Node modules = list_node();
    for (const std::string_view module : recompute_modules(w.plan.model_of(role.role))) {
      modules.items.push_back(node_of(module));
    }
    w.out.settings.push_back(
        {block + "modules", std::move(modules), "what the plan's memory counts on", false});
  }
}

// The engine's keys of a role that trains, or of the reference.
void engine_block(VerlWriter& w, const std::string& prefix, const RolePlan& role) {
  const bool trained = role.role != Role::reference;
  const std::string block =
      prefix + "." + std::string(role.role == Role::critic ? w.keys.critic_block : w.keys.block);
  switch (w.keys.engine) {
    case VerlEngine::megatron:
      return megatron_block(w, block, role, trained);
    case VerlEngine::veomni:
      return write_veomni(w, block, role);
    case VerlEngine::torchtitan:
      return write_torchtitan(w, block, role);
    case VerlEngine::fsdp:
      break;
  }
  w.set(prefix + ".ulysses_sequence_parallel_size", role.layout.cp);
  // 0.9.1 reads the engine's own key for the critic; the outer one is deprecated and not copied.
  if (role.role == Role::critic) {
    w.set(block + ".ulysses_sequence_parallel_size", role.layout.cp);
  }
  fsdp_block(w, block, role, trained);
}

}  // namespace

void write_verl_actor(VerlWriter& w) {
  const std::string prefix = "actor_rollout_ref.actor";
  if (w.work.prompts_per_step % w.work.mini_batches != 0) {
    w.refuse("/workload/mini_batches", std::to_string(w.work.mini_batches),
             "a divisor of prompts_per_step = " + std::to_string(w.work.prompts_per_step),
             "ppo_mini_batch_size counts prompts");
  }
  w.text(prefix + ".strategy", strategy_of(w.keys, w.actor.fsdp));
  w.set(prefix + ".ppo_mini_batch_size", w.work.prompts_per_step / w.work.mini_batches,
        "prompts, not sequences");
  w.set(prefix + ".ppo_epochs", w.work.epochs);
  w.set(prefix + ".use_dynamic_bsz", true, "micro-batches by tokens");
  w.set(prefix + ".ppo_max_token_len_per_gpu",
        w.per_gpu(w.actor, w.actor.batching.update_tokens, "update_tokens"));
  w.set(prefix + ".use_kl_loss", w.work.kl == KlPlace::loss);
  if (w.work.entropy) {
    w.set(prefix + ".entropy_coeff", kEntropyCoefficient, "the plan counts an entropy term");
  }
  if (w.actor.host_optimizer && w.keys.engine != VerlEngine::veomni) {
    const std::string block = prefix + ".optim.override_optimizer_config.";
    w.add(block + "optimizer_cpu_offload", true, "the host computes the step");
    w.add(block + "optimizer_offload_fraction", 1.0);
    w.add(block + "overlap_cpu_optimizer_d2h_h2d", true);
    w.add(block + "use_precision_aware_optimizer", true, "Megatron-LM asks for it");
  }
  engine_block(w, prefix, w.actor);
}

void write_verl_reference(VerlWriter& w) {
  if (w.reference == nullptr) return;
  const std::string prefix = "actor_rollout_ref.ref";
  if (w.reference->fsdp != w.actor.fsdp && w.keys.engine == VerlEngine::fsdp) {
    w.text(prefix + ".strategy", strategy_of(w.keys, w.reference->fsdp));
  }
  w.set(prefix + ".log_prob_use_dynamic_bsz", true);
  w.set(prefix + ".log_prob_max_token_len_per_gpu",
        w.per_gpu(*w.reference, w.reference->batching.log_prob_tokens, "log_prob_tokens"));
  if (w.megatron) {
    const auto uneven = [](const ParallelLayout& layout) {
      return layout.stages != even_stages(layout.stages.back().last, layout.pp, layout.vpp) ||
             layout.stages.back().last % (std::int64_t{layout.pp} * layout.vpp) != 0;
    };
    const bool own = uneven(w.actor.layout) || uneven(w.reference->layout);
    if (own && w.reference->layout.stages != w.actor.layout.stages) {
      w.refuse("/roles/reference/layout/stages", "uneven stages that are not the actor's",
               "the actor's stages, or equal ones for both",
               "ref.megatron.override_transformer_config is the actor's in verl's own YAML");
    }
  }
  engine_block(w, prefix, *w.reference);
  const bool on_host = w.keys.engine == VerlEngine::fsdp || w.keys.engine == VerlEngine::torchtitan;
  if (on_host && !w.reference->offload.parameters) {
    w.note("verl keeps a reference's parameters in host memory between its calls, whatever " +
           prefix + "." + std::string(w.keys.block) +
           ".param_offload says (workers/engine/*/transformer_impl.py); the plan keeps them on "
           "the GPU.");
  }
}

void write_verl_critic(VerlWriter& w) {
  w.set("critic.enable", w.critic != nullptr);
  if (w.critic == nullptr) return;
  const bool shared = w.critic->model == w.actor.model;
  w.weights("critic.model.path", w.critic->model, shared ? w.options.model : "",
            shared ? "MODEL_PATH" : "CRITIC_PATH", shared ? "the model" : "the critic");
  write_verl_lora(w, "critic.model", w.critic->lora);
  w.text("critic.strategy", strategy_of(w.keys, w.critic->fsdp));
  w.set("critic.ppo_mini_batch_size", w.work.prompts_per_step / w.work.mini_batches, "prompts");
  w.set("critic.ppo_epochs", w.work.epochs);
  w.set("critic.use_dynamic_bsz", true);
  const Batching& batching = w.critic->batching;
  const std::int64_t limit = batching.values_tokens > 0
                                 ? std::min(batching.update_tokens, batching.values_tokens)
                                 : batching.update_tokens;
  if (batching.values_tokens > 0 && batching.values_tokens != batching.update_tokens) {
    w.note(
        "verl's critic has one token limit for its update and for the values; the smaller of the "
        "plan's two is written.");
  }
  const std::int64_t tokens = w.per_gpu(*w.critic, limit, "update_tokens");
  w.set("critic.ppo_max_token_len_per_gpu", tokens);
  w.add("critic.ppo_infer_max_token_len_per_gpu", tokens,
        "what verl 0.9.1 reads, for values and update alike");
  if (!w.megatron) {
    w.set("critic.model.use_remove_padding", true);
    w.set("critic.model.enable_gradient_checkpointing", w.critic->recompute == Recompute::full);
  }
  engine_block(w, "critic", *w.critic);
}

}  // namespace tessera
