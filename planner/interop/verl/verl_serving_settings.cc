// verl's keys of what inference engines run: the rollout and the reward model.
#include <algorithm>
#include <cmath>

#include "cost_models/spec/preset_algorithms.h"
#include "planner/interop/verl/verl_writer.h"
#include "planner/plan/hub_name.h"
#include "planner/plan/plan.h"
#include "planner/plan/served_memory.h"
#include "planner/pricing/role/full_gather.h"

namespace tessera {
namespace {

constexpr std::int64_t kMebibyte = 1 << 20;

bool apart_from_actor(const VerlWriter& w, const RolePlan& role) {
  return std::none_of(role.ranks.begin(), role.ranks.end(), [&](int rank) {
    return std::find(w.actor.ranks.begin(), w.actor.ranks.end(), rank) != w.actor.ranks.end();
  });
}

/// Nodes and GPUs on each of a pool that is the role's own.
std::pair<std::int64_t, std::int64_t> pool_of(VerlWriter& w, const RolePlan& role,
                                              const std::string& name) {
  const auto count = static_cast<std::int64_t>(role.ranks.size());
  const std::int64_t per_node = w.plan.cluster.gpus_per_node;
  if (count > per_node && count % per_node != 0) {
    w.refuse("/roles/" + name + "/ranks", std::to_string(count) + " ranks", "whole nodes", "");
  }
  return {count <= per_node ? 1 : count / per_node, std::min(count, per_node)};
}

const std::string kRollout = "actor_rollout_ref.rollout";

// Tokens of a prefill batch; the engines ask for at least one of each sequence.
std::int64_t batched_tokens(VerlWriter& w) {
  const Batching& batching = w.rollout.batching;
  if (batching.prefill_tokens >= batching.max_sequences) return batching.prefill_tokens;
  w.note("max_num_batched_tokens is raised from the plan's " +
         std::to_string(batching.prefill_tokens) +
         " prefill tokens to max_num_seqs, which the engines ask for.");
  return batching.max_sequences;
}

void write_bucket(VerlWriter& w) {
  const auto mebibytes = [](std::int64_t bytes) { return (bytes + kMebibyte - 1) / kMebibyte; };
  const std::int64_t planned =
      w.plan.reshard.empty() ? 0 : mebibytes(w.plan.reshard[0].bucket_bytes);
  const std::int64_t largest = mebibytes(largest_tensor_bytes(w.plan));
  const std::int64_t bucket =
      planned > 0 ? std::max(planned, largest) : mebibytes(gather_bucket_bytes(w.plan));
  w.set(kRollout + ".checkpoint_engine.update_weights_bucket_megabytes", bucket,
        largest >= bucket ? "the largest tensor, whole" : "");
}

void write_log_probs(VerlWriter& w) {
  const bool needed = !computes_old_log_probs(w.work.dataflow);
  const bool untold = w.rollout.log_probs == ToldLogProbs::untold;
  if (untold && needed) {
    w.refuse("/roles/rollout/log_probs", "untold", "told", "they are the old log-probs");
  }
  if (!untold && !needed && w.rollout.log_probs == ToldLogProbs::as_engine) return;
  w.set(kRollout + ".calculate_log_probs", !untold,
        untold ? "a server hands tokens on several times as fast" : "told with each token");
}

void write_rollout(VerlWriter& w) {
  const std::string& prefix = kRollout;
  const ParallelLayout& layout = w.rollout.layout;
  w.text(prefix + ".name", w.options.rollout);
  w.set(prefix + ".n", w.work.samples_per_prompt, "responses per prompt");
  w.set(prefix + ".tensor_model_parallel_size", layout.tp);
  w.set(prefix + ".pipeline_model_parallel_size", layout.pp);
  w.set(prefix + ".data_parallel_size", layout.ep > 1 ? layout.ep / layout.tp : 1,
        layout.ep > 1 ? "inside one engine, for its experts" : "");
  w.set(prefix + ".expert_parallel_size", layout.ep);
  if (layout.ep > layout.tp && w.options.rollout == "sglang") {
    w.add(prefix + ".engine_kwargs.sglang.enable_dp_attention", true,
          "else SGLang would start data_parallel_size servers");
  }
  w.text(prefix + ".dtype", verl_dtype(w.rollout.dtypes.param));
  w.set(prefix + ".gpu_memory_utilization", served_memory_share(w.plan, w.rollout, Phase::gen, 0.5),
        "weights, cache and workspace of the plan");
  w.set(prefix + ".max_num_seqs", w.rollout.batching.max_sequences, "decoded at once");
  w.set(prefix + ".max_num_batched_tokens", batched_tokens(w), "tokens of a prefill batch");
  w.set(prefix + ".max_model_len", longest_sequence(w.work));
  // A server on GPUs of its own frees its cache while weights arrive, and nothing at other times
  // (vllm_async_server.py, release_kv_cache and sleep).
  const bool freed = w.plan.reshard.empty() || !w.plan.reshard[0].keep;
  const std::string held = w.apart ? "cache of the GPU while weights arrive: "
                                   : "weights and cache of the GPU while training: ";
  w.set(prefix + ".free_cache_engine", freed, held + (freed ? "freed" : "kept"));
  w.set(prefix + ".log_prob_use_dynamic_bsz", true);
  w.set(prefix + ".log_prob_max_token_len_per_gpu",
        w.per_gpu(w.actor,
                  w.actor.batching.log_prob_tokens > 0 ? w.actor.batching.log_prob_tokens
                                                       : w.actor.batching.update_tokens,
                  "log_prob_tokens"));
  write_log_probs(w);
  write_bucket(w);
}

/// The asynchronous trainer of 0.9.1 with a pool for the rollout (trainer_separate_async.py): it
/// trains parameter_sync_step mini-batches, then moves the weights; one batch is generated ahead.
void write_rollout_pool(VerlWriter& w) {
  const auto [nodes, per_node] = pool_of(w, w.rollout, "rollout");
  const std::string mode = "trainer.v1.separate_async";
  w.text("trainer.v1.trainer_mode", "separate_async", "rollout on its own GPUs, one step off");
  w.set(mode + ".num_warmup_batches", 1, "batches generated ahead");
  w.set(mode + ".parameter_sync_step", w.work.mini_batches, "mini-batches between weight updates");
  w.set(mode + ".hybrid_rollout.enable_switch", false, "trainer GPUs only train");
  w.set(kRollout + ".nnodes", nodes);
  w.set(kRollout + ".n_gpus_per_node", per_node);
  w.text(kRollout + ".checkpoint_engine.backend", "nccl", "weights pass between the pools");
  if (w.reward != nullptr && !apart_from_actor(w, *w.reward)) {
    w.refuse("/roles/reward/ranks", "GPUs that train", "GPUs of its own",
             "beside an asynchronous rollout verl's reward model has a pool of its own");
  }
  w.note(
      "verl resumes generation that a weight update interrupts (partial rollouts); the plan "
      "counts whole responses, generated one step off.");
}

void write_reward(VerlWriter& w) {
  w.set("reward.reward_model.enable", w.reward != nullptr);
  if (w.reward == nullptr) return;
  const std::string prefix = "reward.reward_model";
  w.weights(prefix + ".model_path", w.reward->model, "", "REWARD_PATH", "the reward model");
  const bool own = apart_from_actor(w, *w.reward);
  w.set(prefix + ".enable_resource_pool", own);
  if (!own && w.reward->ranks.size() != w.actor.ranks.size()) {
    w.refuse("/roles/reward/ranks", std::to_string(w.reward->ranks.size()) + " ranks",
             "all of the actor's GPUs, or GPUs of its own", "verl has these two pools");
  }
  if (own) {
    const auto [nodes, per_node] = pool_of(w, *w.reward, "reward");
    w.set(prefix + ".nnodes", nodes);
    w.set(prefix + ".n_gpus_per_node", per_node);
  }
  w.text(prefix + ".rollout.name", w.options.rollout);
  w.set(prefix + ".rollout.tensor_model_parallel_size", w.reward->layout.tp);
  w.text(prefix + ".rollout.dtype", verl_dtype(w.reward->dtypes.param));
  w.set(prefix + ".rollout.gpu_memory_utilization",
        served_memory_share(w.plan, *w.reward, Phase::reward, 0.5));
  if (!own) {
    const bool sleeps = w.reward->offload.parameters;
    w.set(prefix + ".rollout.free_cache_engine", sleeps,
          sleeps ? "weights wait in host memory between its calls" : "weights stay on the GPU");
  }
  w.set(prefix + ".rollout.max_num_batched_tokens", w.reward->batching.reward_tokens);
  w.set(prefix + ".rollout.prompt_length", longest_sequence(w.work));
}

}  // namespace

void write_verl_serving(VerlWriter& w) {
  write_rollout(w);
  if (w.apart) write_rollout_pool(w);
  write_reward(w);
}

}  // namespace tessera
