#include "executor/config/run_config_readers.h"

#include <array>
#include <string>
#include <vector>

#include "cost_models/documents/strict_json.h"

namespace tessera {
namespace {

constexpr std::array kDecays{LrDecay::constant, LrDecay::cosine};
constexpr std::array kAggregations{
    AggregationMode::token_mean, AggregationMode::token_sum, AggregationMode::seq_mean_token_sum,
    AggregationMode::seq_mean_token_mean, AggregationMode::seq_mean_token_sum_norm};

constexpr Refusal kRoot[] = {
    {"reward_model", "the plan's roles say which reward model runs where"},
    {"custom_reward_function", "it belongs below reward"},
    {"ray_kwargs", "there is no Ray"},
    {"global_profiler", "every run writes trace.json"},
    {"transfer_queue", "ranks exchange data themselves"},
    {"sandbox_fusion", "it belongs below reward"},
    {"skip", "every step is computed"},
};
constexpr Refusal kTrainer[] = {
    {"total_epochs", "state total_training_steps"},
    {"log_val_generations", "every answer of a validation is written"},
    {"critic_warmup", "the actor is updated from the first step", "0"},
    {"logger", "every run writes metrics.jsonl, which python3 -m tessera_trackers sends on"},
    {"project_name", "the run's folder names it"},
    {"experiment_name", "the run's folder names it"},
    {"default_local_dir", "the run's folder is an argument of tessera run"},
    {"del_local_ckpt_after_load", "max_actor_ckpt_to_keep decides what stays", "false"},
    {"default_hdfs_dir", "checkpoints lie in the run's folder"},
    {"balance_batch", "batches are always balanced by tokens", "true"},
    {"rollout_data_dir", "every run writes samples.jsonl"},
    {"device", "the plan's cluster says it"},
    {"use_v1", "there is one trainer"},
    {"v1", "there is one trainer"},
    {"checkpoint_callback_class", "Python classes cannot be loaded"},
    {"esi_redundant_time", "SIGUSR1 ends a run that is to be queued again"},
    {"ray_wait_register_center_timeout", "there is no Ray"},
};
constexpr Refusal kData[] = {
    {"val_batch_size", "all prompts are in flight at once"},
    {"gen_batch_size", "a step generates train_batch_size prompts"},
    {"tokenizer", "the tokenizer is the model's"},
    {"custom_cls", "Python classes cannot be loaded"},
    {"image_key", "models are language models"},
    {"prompt_key", "the files have verl's five fields"},
    {"train_max_samples", "every prompt of the files is taken", "-1"},
    {"dataloader_num_workers", "prompts are read once, before the first step"},
    {"filter_overlong_prompts_workers", "prompts are read once, before the first step"},
    {"trust_remote_code", "remote code is never run", "false"},
    {"return_raw_chat", "every prompt keeps its messages"},
    {"return_raw_input_ids", "every prompt keeps its tokens"},
    {"return_full_prompt", "every prompt keeps its text"},
    {"reward_fn_key", "the files have verl's five fields"},
    {"use_shm", "files are read where they lie", "false"},
    {"validation_shuffle", "a validation answers every prompt"},
    {"tool_config_path", "multi-turn rollouts are not supported"},
    {"function_tool_path", "multi-turn rollouts are not supported"},
    {"audio_key", "models are language models"},
    {"video_key", "models are language models"},
    {"image_patch_size", "models are language models"},
    {"mm_processor_kwargs", "models are language models"},
    {"return_multi_modal_inputs", "models are language models"},
};
constexpr Refusal kRoles[] = {
    {"hybrid_engine", "the plan's roles say who shares GPUs", "true"},
};
constexpr Refusal kModel[] = {
    {"trust_remote_code", "remote code is never run", "false"},
    {"custom_chat_template", "the tokenizer's files say it"},
    {"exclude_modules", "target_modules lists those that are adapted"},
    {"lora", "lora_rank, lora_alpha and target_modules say it"},
    {"override_config", "edit the model's config.json"},
    {"external_lib", "Python modules cannot be loaded"},
    {"tokenizer_path", "the tokenizer is the model's"},
    {"use_liger", "tessera has kernels of its own", "false"},
    {"use_fused_kernels", "tessera has kernels of its own", "false"},
    {"fused_kernel_options", "tessera has kernels of its own"},
    {"enable_activation_offload", "the plan's recompute says what stays", "false"},
    {"hf_config_path", "the plan's model says it"},
    {"use_shm", "files are read where they lie", "false"},
    {"mtp", "layers of MTP are not trained"},
    {"tiled_mlp", "micro-batches are limited by tokens, by the plan"},
};
constexpr Refusal kEngine[] = {
    {"strategy", "the plan's layouts say how a role is cut"},
    {"megatron",
     "the plan's layout says it; moe_z_loss_coeff is actor.router_z_loss_coef, router_replay is "
     "actor.router_replay"},
    {"ulysses_sequence_parallel_size", "the plan's layout.cp says it"},
    {"ppo_micro_batch_size", "micro-batches are limited by tokens, by the plan"},
    {"ppo_micro_batch_size_per_gpu", "micro-batches are limited by tokens, by the plan"},
    {"log_prob_micro_batch_size", "micro-batches are limited by tokens, by the plan"},
    {"log_prob_micro_batch_size_per_gpu", "micro-batches are limited by tokens, by the plan"},
    {"forward_micro_batch_size_per_gpu", "micro-batches are limited by tokens, by the plan"},
    {"checkpoint", "every checkpoint holds everything"},
    {"profiler", "every run writes trace.json"},
    {"use_torch_compile", "there is no Python to compile", "false"},
    {"use_fused_kernels", "tessera has kernels of its own", "false"},
    {"entropy_checkpointing", "entropies are computed with the log-probs"},
    {"entropy_from_logits_with_chunking", "entropies are computed with the log-probs"},
    {"entropy_from_logits_chunk_size", "entropies are computed with the log-probs"},
    {"calculate_entropy", "actor/entropy is always there"},
    {"pad_to_length", "batches are packed", "false"},
    {"rollout_n", "the plan's workload.samples_per_prompt says it"},
    {"qat", "weights are trained in the plan's dtypes"},
};
constexpr Refusal kUpdate[] = {
    {"shuffle", "mini-batches follow the order of the prompts", "false"},
    {"data_loader_seed", "mini-batches follow the prompts' order"},
    {"freeze_vision_tower", "models are language models", "false"},
    {"use_prefix_grouper", "batches are packed", "false"},
    {"calculate_sum_pi_squared", "optimal token baselines compute it"},
};
constexpr Refusal kRollout[] = {
    {"name", "rollout.engine says it: tessera or vllm"},
    {"mode", "the plan's schedule says it"},
    {"gpu_memory_utilization", "the plan's memory says it, vLLM's rollout.vllm"},
    {"enforce_eager", "the engine decides"},
    {"free_cache_engine", "KV memory is always released", "true"},
    {"load_format", "weights arrive by a reshard"},
    {"dtype", "the plan's dtypes say it"},
    {"ignore_eos", "a response ends with its end token", "false"},
    {"do_sample", "responses are always drawn", "true"},
    {"max_model_len", "prompt and response lengths say it"},
    {"enable_chunked_prefill", "the engine decides"},
    {"enable_prefix_caching", "samples of a prompt always share it"},
    {"checkpoint_engine", "the plan's reshard says it"},
    {"calculate_log_probs", "rollouts always return them", "true"},
    {"enable_rollout_routing_replay", "actor.router_replay.mode R3 says it"},
    {"multi_turn", "multi-turn rollouts are not supported"},
    {"agent", "multi-turn rollouts are not supported"},
    {"engine_kwargs", "rollout.vllm.arguments go to vLLM"},
    {"expert_parallel_size", "the plan's layout.ep says it"},
    {"skip_tokenizer_init", "requests and answers are tokens"},
    {"disable_log_stats", "every run writes metrics.jsonl"},
    {"cudagraph_capture_sizes", "the engine decides"},
    {"scheduling_policy", "requests enter in the order of the prompts"},
    {"logprobs_mode", "log-probs are those of what is drawn from"},
    {"layered_summon", "weights arrive by a reshard", "false"},
    {"multi_stage_wake_up", "the plan's memory says it", "false"},
    {"over_sample_rate", "a step generates its own prompts", "0"},
    {"full_determinism", "trainer.deterministic says it"},
    {"quantization", "the plan's dtypes say it"},
    {"quantization_config_file", "the plan's dtypes say it"},
    {"qat", "the plan's dtypes say it"},
    {"mtp", "layers of MTP are not generated with"},
    {"moe_load_balance_metrics_interval", "the routers' balance has no metric of its own"},
    {"router_config_path", "prompts are dealt to replicas by their tokens"},
    {"disaggregation", "prompts and responses are computed by the same ranks"},
    {"nnodes", "the plan's roles say it"},
    {"n_gpus_per_node", "the plan's roles say it"},
    {"prometheus", "trainer.prometheus_port says it"},
    {"trace", "every run writes trace.json"},
};

std::span<const Refusal> refusals_of(Section section) {
  switch (section) {
    case Section::root:
      return kRoot;
    case Section::trainer:
      return kTrainer;
    case Section::data:
      return kData;
    case Section::roles:
      return kRoles;
    case Section::model:
      return kModel;
    case Section::engine:
      return kEngine;
    case Section::update:
      return kUpdate;
    case Section::rollout:
      return kRollout;
  }
  return {};
}

}  // namespace

void refuse_unsupported(ObjectReader& reader, Section section) {
  refuse_unsupported(reader, refusals_of(section));
}

void refuse_unsupported(ObjectReader& reader, std::span<const Refusal> refusals) {
  for (const Refusal& refusal : refusals) {
    const Node* const given = reader.find(refusal.key);
    if (given == nullptr) continue;
    if (refusal.same != nullptr && json_line(*given) == refusal.same) continue;
    reader.refuse(refusal.key, "verl's key '" + std::string(refusal.key) + "'",
                  "keys that tessera supports", refusal.reason);
  }
}

void fixed(ObjectReader& reader, std::string_view key, std::int64_t planned,
           const std::string& where) {
  std::int64_t value = planned;
  reader.optional(key, value);
  if (value != planned) {
    reader.refuse(key, std::to_string(planned) + ", the plan's " + where,
                  "plan again, or leave the key out");
  }
}

void fixed_flag(ObjectReader& reader, std::string_view key, bool planned,
                const std::string& where) {
  bool value = planned;
  reader.optional(key, value);
  if (value != planned) {
    reader.refuse(key, std::string(planned ? "true" : "false") + ", as the plan's " + where,
                  "plan again, or leave the key out");
  }
}

void fixed(ObjectReader& reader, std::string_view key, const std::string& planned,
           const std::string& where) {
  std::string value = planned;
  reader.optional(key, value);
  if (value != planned) {
    reader.refuse(key, "\"" + planned + "\", the plan's " + where,
                  "plan again, or leave the key out");
  }
}

void read_seed(ObjectReader& reader, std::string_view key, std::uint64_t& seed) {
  auto value = static_cast<std::int64_t>(seed);
  reader.optional(key, value, kNotNegative);
  seed = static_cast<std::uint64_t>(value);
}

void read_clip(ObjectReader& reader, std::string_view key, std::optional<double>& bound) {
  const Node* const given = reader.find(key);
  if (given != nullptr && given->is(Node::Kind::null)) bound.reset();
  reader.optional(key, bound, kFromZero);
}

void read_kl_type(ObjectReader& reader, std::string_view key, KlPenalty& penalty) {
  std::string name;
  reader.optional(key, name);
  if (name.empty()) return;
  if (const auto known = kl_penalty_from(name)) {
    penalty = *known;
  } else {
    reader.refuse(key, "kl, k1, abs, mse, k2, low_var_kl or k3, each with an optional +",
                  name == "full" ? "verl documents it but does not implement it" : "");
  }
}

void read_aggregation(ObjectReader& reader, std::int64_t response_tokens,
                      Aggregation& aggregation) {
  reader.optional("loss_agg_mode", aggregation.mode, kAggregations);
  reader.optional("loss_scale_factor", aggregation.loss_scale_factor, kAboveZero);
  if (!aggregation.loss_scale_factor) {
    aggregation.loss_scale_factor = static_cast<double>(response_tokens);
  }
}

void read_optim(ObjectReader& parent, OptimConfig& optim) {
  auto reader = parent.object("optim", false);
  if (!reader) return;
  reader->optional("lr", optim.lr, kFromZero);
  reader->optional("lr_scheduler_type", optim.decay, kDecays);
  reader->optional("lr_warmup_steps", optim.lr_warmup_steps);
  reader->optional("lr_warmup_steps_ratio", optim.lr_warmup_steps_ratio, kFraction);
  reader->optional("min_lr_ratio", optim.min_lr_ratio, kFraction);
  reader->optional("weight_decay", optim.weight_decay, kFromZero);
  reader->optional("eps", optim.eps, kAboveZero);
  std::vector<double> betas{optim.beta1, optim.beta2};
  reader->list("betas", betas, Real{.least = 0, .most = 1}, false);
  if (betas.size() != 2 || betas[0] >= 1 || betas[1] >= 1) {
    reader->refuse("betas", "two numbers from 0 to below 1");
  } else {
    optim.beta1 = betas[0];
    optim.beta2 = betas[1];
  }
  refuse_unsupported(*reader, {{"optimizer", "the optimizer is AdamW"},
                               {"optimizer_impl", "the optimizer is AdamW"},
                               {"clip_grad", "grad_clip beside optim says it"},
                               {"warmup_style", "lr_scheduler_type says it"},
                               {"zero_indexed_step", "the first step has the first rate"},
                               {"num_cycles", "cosine takes half a wave"},
                               {"override_optimizer_config", "the optimizer is AdamW"},
                               {"total_training_steps", "it follows from trainer and the plan"}});
  reader->refuse_unknown_keys();
}

}  // namespace tessera
