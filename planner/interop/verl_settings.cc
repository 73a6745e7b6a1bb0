#include "planner/interop/verl_settings.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "planner/plan/one_step_off.h"
#include "planner/search/amounts.h"

namespace tessera {
namespace {

constexpr std::int64_t kMebibyte = 1 << 20;
constexpr std::int64_t kDefaultBucketMebibytes = 2048;

std::string_view verl_dtype(DType type) {
  switch (type) {
    case DType::bf16:
      return "bfloat16";
    case DType::fp16:
      return "float16";
    default:
      return "float32";
  }
}

std::string_view model_dtype(DType type) {
  return type == DType::fp32 ? "fp32" : type == DType::bf16 ? "bf16" : "fp16";
}

class Writer {
 public:
  Writer(const Plan& plan, const VerlOptions& options, Problems& problems)
      : plan_(plan),
        work_(plan.workload),
        options_(options),
        problems_(problems),
        actor_(*plan.find(Role::actor)),
        rollout_(*plan.find(Role::rollout)),
        critic_(plan.find(Role::critic)),
        reference_(plan.find(Role::reference)),
        reward_(plan.find(Role::reward)),
        megatron_(plan.engine == "verl-megatron"),
        apart_(is_one_step_off(plan.schedule)) {}

  VerlSettings write() {
    cluster();
    data();
    model();
    actor();
    reference();
    rollout();
    if (apart_) rollout_pool();
    algorithm();
    critic();
    reward();
    general_notes();
    return std::move(out_);
  }

 private:
  template <class T>
  void set(std::string key, T value, std::string comment = {}) {
    out_.settings.push_back({std::move(key), node_of(value), std::move(comment), false});
  }
  template <class T>
  void add(std::string key, T value, std::string comment = {}) {
    out_.settings.push_back({std::move(key), node_of(value), std::move(comment), true});
  }
  void text(std::string key, std::string_view value, std::string comment = {}) {
    check_name(key, value);
    out_.settings.push_back({std::move(key), node_of(value), std::move(comment), false});
  }
  void note(std::string sentence) { out_.notes.push_back(std::move(sentence)); }
  void refuse(std::string place, std::string found, std::string expected, std::string hint) {
    problems_.push_back(
        {"plan", std::move(place), std::move(found), std::move(expected), std::move(hint)});
  }
  void check_name(const std::string& key, std::string_view value) {
    if (value.find("${") != value.npos) {
      refuse(key, "'${' in a name", "a name without it", "OmegaConf would interpolate it");
    }
    for (const char c : value) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
        return refuse(key, "a control character in a name", "printable characters", "");
      }
    }
  }

  bool apart_from_actor(const RolePlan& role) const {
    return std::none_of(role.ranks.begin(), role.ranks.end(), [&](int rank) {
      return std::find(actor_.ranks.begin(), actor_.ranks.end(), rank) != actor_.ranks.end();
    });
  }
  std::pair<std::int64_t, std::int64_t> pool_of(const RolePlan& role, const std::string& name);
  int world() const { return static_cast<int>(actor_.ranks.size()); }

  void cluster();
  void data();
  void model();
  void actor();
  void reference();
  void rollout();
  void rollout_pool();
  void algorithm();
  void critic();
  void reward();
  void general_notes();

  /// Tokens per GPU of a limit that the plan states per replica.
  std::int64_t per_gpu(const RolePlan& role, std::int64_t tokens, const char* field);
  void fsdp_block(const std::string& prefix, const RolePlan& role, bool trained);
  void megatron_block(const std::string& prefix, const RolePlan& role, bool trained);
  void stage_keys(const std::string& prefix, const ParallelLayout& layout);
  double memory_fraction(const RolePlan& role, Phase phase) const;

  const Plan& plan_;
  const Workload& work_;
  const VerlOptions& options_;
  Problems& problems_;
  const RolePlan &actor_, &rollout_;
  const RolePlan *critic_, *reference_, *reward_;
  bool megatron_;
  bool apart_;  // the rollout generates one step ahead on GPUs of its own
  VerlSettings out_;
};

void Writer::cluster() {
  const std::int64_t per_node = plan_.cluster.gpus_per_node;
  const bool part = world() <= per_node;
  if (!part && world() % per_node != 0) {
    refuse("/roles/0/ranks", std::to_string(world()) + " ranks",
           "whole nodes of " + std::to_string(per_node) + " GPUs",
           "trainer.n_gpus_per_node is one number for all nodes");
  }
  set("trainer.nnodes", part ? std::int64_t{1} : world() / per_node);
  set("trainer.n_gpus_per_node", part ? std::int64_t{world()} : per_node);
  set("trainer.balance_batch", true, "sequences by length over the data-parallel ranks");
  text("trainer.project_name", options_.project);
  text("trainer.experiment_name", options_.experiment);
}

void Writer::data() {
  if (!options_.train_files.empty()) text("data.train_files", options_.train_files);
  if (!options_.val_files.empty()) text("data.val_files", options_.val_files);
  set("data.train_batch_size", work_.prompts_per_step, "prompts");
  set("data.max_prompt_length", work_.prompt_tokens, "tokens");
  set("data.max_response_length", work_.response_tokens.max, "tokens");
}

void Writer::model() {
  const std::string& path =
      options_.model.empty() ? plan_.models.at(actor_.model).path : options_.model;
  text("actor_rollout_ref.model.path", path);
  set("actor_rollout_ref.model.use_remove_padding", true, "packed sequences, as the plan counts");
  if (!megatron_) {
    set("actor_rollout_ref.model.enable_gradient_checkpointing",
        actor_.recompute == Recompute::full);
  }
  set("actor_rollout_ref.hybrid_engine", !apart_,
      apart_ ? "no rollout on the actor's GPUs" : "rollout on the actor's GPUs");
}

std::int64_t Writer::per_gpu(const RolePlan& role, std::int64_t tokens, const char* field) {
  const std::int64_t longest = work_.prompt_tokens + work_.response_tokens.max;
  const std::string place = "/roles/" + std::string(name_of(role.role)) + "/batching/" + field;
  if (tokens < longest) {
    refuse(place, std::to_string(tokens),
           "at least one longest sequence, " + std::to_string(longest) + " tokens",
           "verl never cuts a sequence");
  }
  const std::int64_t cp = role.layout.cp;
  if (tokens % cp != 0) {
    note(std::string(name_of(role.role)) + "." + field + " = " + std::to_string(tokens) +
         " is no multiple of the context-parallel degree " + std::to_string(cp) +
         "; verl's limit per GPU is rounded down.");
  }
  return tokens / cp;
}

void Writer::fsdp_block(const std::string& prefix, const RolePlan& role, bool trained) {
  const ParallelLayout& layout = role.layout;
  const bool hybrid = layout.dp_shard > 1 && layout.dp_replicate > 1;
  const std::int64_t size = layout.zero == 3 && hybrid ? std::int64_t{layout.dp_shard} * layout.cp
                            : layout.zero == 0 && role.ranks.size() > 1 ? 1
                                                                        : -1;
  set(prefix + ".fsdp_size", size,
      size == 1  ? "no sharding"
      : size < 0 ? "all GPUs"
                 : "shards of each replica");
  set(prefix + ".reshard_after_forward", layout.zero == 3,
      layout.zero == 3 ? "ZeRO-3" : "parameters stay gathered until the backward pass");
  set(prefix + ".param_offload", role.offload.parameters);
  if (trained) set(prefix + ".optimizer_offload", role.offload.optimizer);
  text(prefix + ".model_dtype", model_dtype(trained ? role.dtypes.master : role.dtypes.param),
       trained ? "master weights" : "");
  text(prefix + ".dtype", verl_dtype(role.dtypes.param), "compute and gathered weights");
}

void Writer::stage_keys(const std::string& prefix, const ParallelLayout& layout) {
  if (layout.pp == 1 || layout.vpp > 1) return;
  const auto layers = [&](std::size_t i) { return layout.stages[i].last - layout.stages[i].first; };
  const std::size_t last = layout.stages.size() - 1;
  const std::int64_t middle = last >= 2 ? layers(1) : layers(last);
  const std::string block = prefix + ".override_transformer_config.num_layers_in_";
  if (layers(0) != middle) add(block + "first_pipeline_stage", layers(0));
  if (last >= 2 && layers(last) != middle) add(block + "last_pipeline_stage", layers(last));
}

void Writer::megatron_block(const std::string& prefix, const RolePlan& role, bool trained) {
  const ParallelLayout& layout = role.layout;
  set(prefix + ".tensor_model_parallel_size", layout.tp);
  set(prefix + ".pipeline_model_parallel_size", layout.pp);
  // Written even where there are none: the reference would inherit the actor's.
  if (layout.vpp > 1) {
    set(prefix + ".virtual_pipeline_model_parallel_size", layout.vpp);
  } else {
    out_.settings.push_back({prefix + ".virtual_pipeline_model_parallel_size", {}, "", false});
  }
  set(prefix + ".context_parallel_size", layout.cp);
  set(prefix + ".expert_model_parallel_size", layout.ep);
  if (layout.ep > 1) set(prefix + ".expert_tensor_parallel_size", layout.etp);
  set(prefix + ".sequence_parallel", layout.sequence_parallel);
  if (trained) set(prefix + ".use_distributed_optimizer", layout.zero == 1, "ZeRO-1");
  set(prefix + ".param_offload", role.offload.parameters, "gradient buffers go with it");
  if (trained) set(prefix + ".optimizer_offload", role.offload.optimizer);
  text(prefix + ".dtype", verl_dtype(role.dtypes.param));
  if (!trained) return;  // override_transformer_config is the actor's
  stage_keys(prefix, layout);
  const std::string block = prefix + ".override_transformer_config.recompute_";
  if (role.recompute == Recompute::full) {
    text(block + "granularity", "full");
    text(block + "method", "uniform");
    set(block + "num_layers", 1);
  } else if (role.recompute == Recompute::selective) {
    text(block + "granularity", "selective");
  }
}

void Writer::actor() {
  const std::string prefix = "actor_rollout_ref.actor";
  if (work_.prompts_per_step % work_.mini_batches != 0) {
    refuse("/workload/mini_batches", std::to_string(work_.mini_batches),
           "a divisor of prompts_per_step = " + std::to_string(work_.prompts_per_step),
           "ppo_mini_batch_size counts prompts");
  }
  text(prefix + ".strategy", megatron_ ? "megatron" : "fsdp2");
  set(prefix + ".ppo_mini_batch_size", work_.prompts_per_step / work_.mini_batches,
      "prompts, not sequences");
  set(prefix + ".ppo_epochs", work_.epochs);
  set(prefix + ".use_dynamic_bsz", true, "micro-batches by tokens");
  set(prefix + ".ppo_max_token_len_per_gpu",
      per_gpu(actor_, actor_.batching.update_tokens, "update_tokens"));
  set(prefix + ".use_kl_loss", work_.kl == KlPlace::loss);
  if (megatron_) {
    megatron_block(prefix + ".megatron", actor_, true);
  } else {
    set(prefix + ".ulysses_sequence_parallel_size", actor_.layout.cp);
    fsdp_block(prefix + ".fsdp_config", actor_, true);
  }
}

void Writer::reference() {
  if (reference_ == nullptr) return;
  const std::string prefix = "actor_rollout_ref.ref";
  set(prefix + ".log_prob_use_dynamic_bsz", true);
  set(prefix + ".log_prob_max_token_len_per_gpu",
      per_gpu(*reference_, reference_->batching.log_prob_tokens, "log_prob_tokens"));
  if (megatron_) {
    const auto uneven = [](const ParallelLayout& layout) {
      return layout.stages != even_stages(layout.stages.back().last, layout.pp, layout.vpp) ||
             layout.stages.back().last % (layout.pp * layout.vpp) != 0;
    };
    const bool own = uneven(actor_.layout) || uneven(reference_->layout);
    if (own && reference_->layout.stages != actor_.layout.stages) {
      refuse("/roles/reference/layout/stages", "uneven stages that are not the actor's",
             "the actor's stages, or equal ones for both",
             "ref.megatron.override_transformer_config is the actor's in verl's own YAML");
    }
    megatron_block(prefix + ".megatron", *reference_, false);
    return;
  }
  set(prefix + ".ulysses_sequence_parallel_size", reference_->layout.cp);
  fsdp_block(prefix + ".fsdp_config", *reference_, false);
  if (!reference_->offload.parameters) {
    note(
        "verl keeps a FSDP reference's parameters in host memory between its calls, whatever "
        "ref.fsdp_config.param_offload says (workers/engine/fsdp/transformer_impl.py); the plan "
        "keeps them on the GPU.");
  }
}

// Share of a GPU's memory that an inference engine may use: weights, cache and what it needs beside
// them, in hundredths, rounded up.
double Writer::memory_fraction(const RolePlan& role, Phase phase) const {
  const auto found = role.memory.find(phase);
  if (found == role.memory.end() || plan_.cluster.device.memory.value <= 0) return 0.5;
  MemoryUse use = found->second;
  use.reserve = use.reshard = 0;
  const double share =
      static_cast<double>(use.total()) / static_cast<double>(plan_.cluster.device.memory.value);
  return std::clamp(std::ceil(share * 100) / 100, 0.05, 0.95);
}

void Writer::rollout() {
  const std::string prefix = "actor_rollout_ref.rollout";
  const ParallelLayout& layout = rollout_.layout;
  text(prefix + ".name", options_.rollout);
  set(prefix + ".n", work_.samples_per_prompt, "responses per prompt");
  set(prefix + ".tensor_model_parallel_size", layout.tp);
  set(prefix + ".pipeline_model_parallel_size", layout.pp);
  set(prefix + ".data_parallel_size", layout.ep > 1 ? layout.ep / layout.tp : 1,
      layout.ep > 1 ? "inside one engine, for its experts" : "");
  set(prefix + ".expert_parallel_size", layout.ep);
  text(prefix + ".dtype", verl_dtype(rollout_.dtypes.param));
  set(prefix + ".gpu_memory_utilization", memory_fraction(rollout_, Phase::gen),
      "weights, cache and workspace of the plan");
  set(prefix + ".max_num_seqs", rollout_.batching.max_sequences, "decoded at once");
  std::int64_t batched = rollout_.batching.prefill_tokens;
  if (batched < rollout_.batching.max_sequences) {
    batched = rollout_.batching.max_sequences;
    note("max_num_batched_tokens is raised from the plan's " +
         std::to_string(rollout_.batching.prefill_tokens) +
         " prefill tokens to max_num_seqs, which the engines ask for.");
  }
  set(prefix + ".max_num_batched_tokens", batched, "tokens of a prefill batch");
  set(prefix + ".max_model_len", work_.prompt_tokens + work_.response_tokens.max);
  set(prefix + ".free_cache_engine", !apart_,
      apart_ ? "" : "weights and cache leave the GPU while training");
  set(prefix + ".log_prob_use_dynamic_bsz", true);
  set(prefix + ".log_prob_max_token_len_per_gpu",
      per_gpu(actor_,
              actor_.batching.log_prob_tokens > 0 ? actor_.batching.log_prob_tokens
                                                  : actor_.batching.update_tokens,
              "log_prob_tokens"));
  const std::int64_t planned =
      plan_.reshard.empty() ? 0 : (plan_.reshard[0].bucket_bytes + kMebibyte - 1) / kMebibyte;
  const std::int64_t largest = (largest_tensor_bytes(plan_) + kMebibyte - 1) / kMebibyte;
  const std::int64_t bucket = std::max(planned > 0 ? planned : kDefaultBucketMebibytes, largest);
  set(prefix + ".checkpoint_engine.update_weights_bucket_megabytes", bucket,
      largest >= bucket ? "the largest tensor, whole" : "");
}

/// The asynchronous trainer of 0.9.1 with a pool for the rollout (trainer_separate_async.py): it
/// trains parameter_sync_step mini-batches, then moves the weights; one batch is generated ahead.
void Writer::rollout_pool() {
  const auto [nodes, per_node] = pool_of(rollout_, "rollout");
  const std::string mode = "trainer.v1.separate_async";
  text("trainer.v1.trainer_mode", "separate_async", "rollout on its own GPUs, one step ahead");
  set(mode + ".num_warmup_batches", 1, "batches generated ahead");
  set(mode + ".parameter_sync_step", work_.mini_batches, "mini-batches between weight updates");
  set(mode + ".hybrid_rollout.enable_switch", false, "trainer GPUs only train");
  const std::string prefix = "actor_rollout_ref.rollout";
  set(prefix + ".nnodes", nodes);
  set(prefix + ".n_gpus_per_node", per_node);
  text(prefix + ".checkpoint_engine.backend", "nccl", "weights pass between the pools");
  if (reward_ != nullptr && !apart_from_actor(*reward_)) {
    refuse("/roles/reward/ranks", "GPUs that train", "GPUs of its own",
           "beside an asynchronous rollout verl's reward model has a pool of its own");
  }
  note(
      "verl resumes generation that a weight update interrupts (partial rollouts); the plan "
      "counts whole responses, generated one step ahead.");
}

/// Nodes and GPUs on each of a pool that is the role's own.
std::pair<std::int64_t, std::int64_t> Writer::pool_of(const RolePlan& role,
                                                      const std::string& name) {
  const auto count = static_cast<std::int64_t>(role.ranks.size());
  const std::int64_t per_node = plan_.cluster.gpus_per_node;
  if (count > per_node && count % per_node != 0) {
    refuse("/roles/" + name + "/ranks", std::to_string(count) + " ranks", "whole nodes", "");
  }
  return {count <= per_node ? 1 : count / per_node, std::min(count, per_node)};
}

void Writer::algorithm() {
  if (work_.algorithm == "custom") {
    refuse("/workload/algorithm", "custom", "ppo or grpo", "verl's dataflow is its own");
  }
  text("algorithm.adv_estimator", work_.algorithm == "grpo" ? "grpo" : "gae");
  set("algorithm.use_kl_in_reward", work_.kl == KlPlace::reward);
}

void Writer::critic() {
  set("critic.enable", critic_ != nullptr);
  if (critic_ == nullptr) return;
  const std::string& path = critic_->model == actor_.model && !options_.model.empty()
                                ? options_.model
                                : plan_.models.at(critic_->model).path;
  text("critic.model.path", path);
  text("critic.strategy", megatron_ ? "megatron" : "fsdp2");
  set("critic.ppo_mini_batch_size", work_.prompts_per_step / work_.mini_batches, "prompts");
  set("critic.ppo_epochs", work_.epochs);
  set("critic.use_dynamic_bsz", true);
  const Batching& batching = critic_->batching;
  const std::int64_t limit = batching.values_tokens > 0
                                 ? std::min(batching.update_tokens, batching.values_tokens)
                                 : batching.update_tokens;
  if (batching.values_tokens > 0 && batching.values_tokens != batching.update_tokens) {
    note(
        "verl's critic has one token limit for its update and for the values; the smaller of the "
        "plan's two is written.");
  }
  const std::int64_t tokens = per_gpu(*critic_, limit, "update_tokens");
  set("critic.ppo_max_token_len_per_gpu", tokens);
  add("critic.ppo_infer_max_token_len_per_gpu", tokens,
      "what verl 0.9.1 reads, for values and update alike");
  if (megatron_) {
    megatron_block("critic.megatron", *critic_, true);
    return;
  }
  set("critic.model.use_remove_padding", true);
  set("critic.model.enable_gradient_checkpointing", critic_->recompute == Recompute::full);
  set("critic.ulysses_sequence_parallel_size", critic_->layout.cp);
  // 0.9.1 reads the engine's own key for the critic; the outer one is deprecated and not copied.
  set("critic.fsdp.ulysses_sequence_parallel_size", critic_->layout.cp);
  fsdp_block("critic.fsdp", *critic_, true);
}

void Writer::reward() {
  set("reward.reward_model.enable", reward_ != nullptr);
  if (reward_ == nullptr) return;
  const std::string prefix = "reward.reward_model";
  text(prefix + ".model_path", plan_.models.at(reward_->model).path);
  const bool own = apart_from_actor(*reward_);
  set(prefix + ".enable_resource_pool", own);
  if (!own && reward_->ranks.size() != actor_.ranks.size()) {
    refuse("/roles/reward/ranks", std::to_string(reward_->ranks.size()) + " ranks",
           "all of the actor's GPUs, or GPUs of its own", "verl has these two pools");
  }
  if (own) {
    const auto [nodes, per_node] = pool_of(*reward_, "reward");
    set(prefix + ".nnodes", nodes);
    set(prefix + ".n_gpus_per_node", per_node);
  }
  text(prefix + ".rollout.name", options_.rollout);
  set(prefix + ".rollout.tensor_model_parallel_size", reward_->layout.tp);
  text(prefix + ".rollout.dtype", verl_dtype(reward_->dtypes.param));
  set(prefix + ".rollout.gpu_memory_utilization", memory_fraction(*reward_, Phase::reward));
  set(prefix + ".rollout.max_num_batched_tokens", reward_->batching.reward_tokens);
  set(prefix + ".rollout.prompt_length", work_.prompt_tokens + work_.response_tokens.max);
}

void Writer::general_notes() {
  if (work_.response_tokens.mean < static_cast<double>(work_.response_tokens.max)) {
    char mean[32];
    std::snprintf(mean, sizeof mean, "%.0f", work_.response_tokens.mean);
    note("The plan expects responses of " + std::string(mean) + " tokens on average; verl only " +
         "knows the longest, " + std::to_string(work_.response_tokens.max) + ".");
  }
  if (!plan_.reshard.empty() && !apart_) {
    PlannedReshard full = plan_.reshard[0];
    const std::int64_t minimal = full.bytes_received;
    full.mode = ReshardMode::full;
    const std::int64_t whole = reshard_plan_of(plan_, full).bytes_received.value;
    if (plan_.reshard[0].mode == ReshardMode::minimal && whole > minimal) {
      note("verl gathers every tensor whole to move weights into the rollout: " + in_gib(whole) +
           " into every GPU in each step, where the plan moves " + in_gib(minimal) +
           "; expect a longer update_weights than the plan's reshard.");
    }
  }
  if (megatron_) {
    for (const RolePlan& role : plan_.roles) {
      if (role.role == Role::rollout || role.rank_order == RankOrder::megatron) continue;
      if (role.layout.pp == 1 || role.layout.dp() == 1) continue;
      note("Megatron places the " + std::string(name_of(role.role)) +
           "'s pipeline stages far apart (tp, cp, dp, pp); the plan's ranks are " +
           std::string(name_of(role.rank_order)) + ".");
    }
    if (actor_.layout.ep > 1 && actor_.layout.tp > 1 && !actor_.layout.sequence_parallel) {
      refuse("/roles/0/layout/sequence_parallel", "false", "true",
             "Megatron wants it where experts and tensors are both parallel");
    }
  }
  for (const RolePlan& role : plan_.roles) {
    if (role.offload.gradients == role.offload.parameters || &role == &rollout_) continue;
    if (&role != &actor_ && &role != critic_) continue;
    note("verl moves the " + std::string(name_of(role.role)) +
         "'s gradients with its parameters; the plan treats them apart.");
  }
  if (rollout_.layout.ep > 1 || actor_.layout.ep > 1) {
    note(
        "Mixture of experts: routers of trainer and inference engine disagree on some tokens; "
        "watch "
        "training/rollout_probs_diff_* and consider actor.megatron.router_replay.mode=R3 with "
        "rollout.enable_rollout_routing_replay=true, or algorithm.rollout_correction "
        "(verl issue 2953).");
    note(
        "Mixture of experts: vLLM's sleep level is 1 with expert parallelism, so weights go to "
        "host "
        "memory and need room there.");
  }
  note("Written for verl " + std::string(kVerlVersion) +
       "; it runs with vllm 0.24.0 or sglang "
       "0.5.12, torch 2.11.0 and transformers 5.9.0. NCCL 2.28.3 to 2.28.7 cannot restart "
       "communicators in a process: use the torch wheel's 2.28.9.");
}

}  // namespace

std::int64_t largest_tensor_bytes(const Plan& plan) {
  const RolePlan* const actor = plan.find(Role::actor);
  if (actor == nullptr) return 0;
  std::int64_t largest = 0;
  const ModelSpec& model = plan.models.at(actor->model).spec;
  // Gathered in the type of the stored parameters: FSDP's are the master weights.
  const DType type = plan.engine == "verl" ? actor->dtypes.master : actor->dtypes.param;
  largest = std::max(largest, model.vocab * model.hidden * size_of(type));
  return std::max(largest, model.ffn * model.hidden * size_of(type));
}

VerlSettings verl_settings(const Plan& plan, const VerlOptions& options, Problems& problems) {
  if (plan.find(Role::actor) == nullptr || plan.find(Role::rollout) == nullptr) {
    problems.push_back(
        {"plan", "/roles", "no actor or no rollout", "both", "verl trains with both"});
    return {};
  }
  return Writer(plan, options, problems).write();
}

}  // namespace tessera
