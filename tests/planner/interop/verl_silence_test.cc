// No key of verl's that costs time or memory is read by nothing: each switch and number of its
// configuration, set otherwise than by default (fixtures/verl_other_values.txt, made from the wheel
// by scripts/make_verl_keys.py), changes the plan or is told, unless it is listed here.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem.h"
#include "planner/interop/import.h"
#include "planner/plan/plan_json.h"
#include "tests/planner/interop/exported.h"
#include "tests/planner/interop/target_of.h"

namespace tessera {
namespace {

/// Beginnings of keys that change what is learned, logged, saved or validated, what is done once
/// before a run, or how long verl waits.
constexpr std::array<std::string_view, 55> kCostNothing{
    "actor_rollout_ref.actor.calculate_sum_pi_squared",
    "actor_rollout_ref.actor.clip_ratio",
    "actor_rollout_ref.actor.data_loader_seed",
    "actor_rollout_ref.actor.grad_clip",
    "actor_rollout_ref.actor.kl_loss_coef",
    "actor_rollout_ref.actor.optim.",
    "actor_rollout_ref.actor.policy_loss.",
    "actor_rollout_ref.actor.shuffle",
    "actor_rollout_ref.actor.tau_",
    "actor_rollout_ref.hybrid_engine",
    "actor_rollout_ref.model.trust_remote_code",
    "actor_rollout_ref.model.use_shm",
    "actor_rollout_ref.nccl_timeout",
    "actor_rollout_ref.rollout.agent.",
    "actor_rollout_ref.rollout.calculate_log_probs",
    "actor_rollout_ref.rollout.disable_log_stats",
    "actor_rollout_ref.rollout.do_sample",
    "actor_rollout_ref.rollout.full_determinism",
    "actor_rollout_ref.rollout.ignore_eos",
    "actor_rollout_ref.rollout.prometheus.",
    "actor_rollout_ref.rollout.seed",
    "actor_rollout_ref.rollout.skip_tokenizer_init",
    "actor_rollout_ref.rollout.top_",
    "actor_rollout_ref.rollout.trace.",
    "actor_rollout_ref.rollout.val_kwargs.",
    "algorithm.gamma",
    "algorithm.kl_ctrl.",
    "algorithm.lam",
    "algorithm.norm_adv_by_std_in_grpo",
    "algorithm.rollout_correction.rollout_",
    "algorithm.use_pf_ppo",
    "critic.cliprange_value",
    "critic.data_loader_seed",
    "critic.grad_clip",
    "critic.model.trust_remote_code",
    "critic.model.use_fused_kernels",
    "critic.model.use_shm",
    "critic.nccl_timeout",
    "critic.optim.",
    "data.",
    "global_profiler.",
    "reward.num_workers",
    "skip.",
    "trainer.balance_batch",
    "trainer.critic_warmup",
    "trainer.del_local_ckpt_after_load",
    "trainer.esi_redundant_time",
    "trainer.log_val_generations",
    "trainer.ray_wait_register_center_timeout",
    "trainer.save_freq",
    "trainer.test_freq",
    "trainer.total_",
    "trainer.v1.sampler.",
    "trainer.val_",
    "transfer_queue.",
};

/// Beginnings of keys of what another key asks for, which is told itself; of experts, towers and
/// reward models, which this job has not; of scoring, where the actor's or critic's are told.
constexpr std::array<std::string_view, 20> kOfOthers{
    "actor_rollout_ref.actor.freeze_vision_tower",
    "actor_rollout_ref.ref.",
    "actor_rollout_ref.rollout.data_parallel_size",
    "actor_rollout_ref.rollout.disaggregation.",
    "actor_rollout_ref.rollout.enable_rollout_routing_replay",
    "actor_rollout_ref.rollout.layered_summon",
    "actor_rollout_ref.rollout.moe_load_balance_metrics_interval",
    "actor_rollout_ref.rollout.multi_turn.",
    "actor_rollout_ref.rollout.nnodes",
    "algorithm.filter_groups.",
    "algorithm.pf_ppo.",
    "critic.fsdp.entropy_",
    "critic.fsdp.use_torch_compile",
    "critic.megatron.entropy_",
    "critic.model.enable_gradient_checkpointing",
    "distillation.",
    "reward.reward_model.",
    "reward.sandbox_fusion.",
    "trainer.v1.colocate_async.",
    "trainer.v1.separate_async.",
};

/// The same of keys that stand in several blocks.
constexpr std::array<std::string_view, 17> kInside{
    ".checkpoint.",
    ".forward_only",
    ".lora.",
    ".lora_",
    ".mtp.",
    ".num_shards",
    ".pad_bshd_",
    ".pad_to_length_bucket",
    ".profiler.",
    ".qat.group_size",
    ".seed",
    ".turbo_config.",
    ".use_orig_params",
    "_chunk_size",
    "_fully_reshardable",
    "mbridge",
    "dist_checkpointing",
};

bool may_be_silent(std::string_view key) {
  const auto begins = [&](std::string_view text) { return key.starts_with(text); };
  return std::any_of(kCostNothing.begin(), kCostNothing.end(), begins) ||
         std::any_of(kOfOthers.begin(), kOfOthers.end(), begins) ||
         std::any_of(kInside.begin(), kInside.end(),
                     [&](std::string_view text) { return key.find(text) != key.npos; });
}

/// All that an import says.
std::string said(const std::string& words) {
  Problems problems;
  const ImportOptions options{.cluster = *read_cluster_spec("h800-8", problems)};
  const auto made =
      import_config("python3 -m verl.trainer.main_ppo " + words + "\n", "a.sh", options, problems);
  std::string text;
  for (const Problem& problem : problems) text += to_string(problem) + "\n";
  if (!made) return text;
  for (const std::string& note : made->notes) text += note + "\n";
  for (const IgnoredKey& key : made->ignored) text += key.key + " " + key.why + "\n";
  return text + std::to_string(made->memory_share) + to_json(made->plan);
}

/// PPO of a 7B with a reference on eight GPUs, by tokens or by counted sequences.
std::string job(bool megatron, bool dynamic) {
  std::string words =
      "algorithm.adv_estimator=gae data.train_batch_size=64 actor_rollout_ref.rollout.name=vllm "
      "actor_rollout_ref.model.path=Qwen/Qwen2.5-7B critic.model.path=Qwen/Qwen2.5-7B "
      "actor_rollout_ref.actor.use_kl_loss=True actor_rollout_ref.actor.ppo_mini_batch_size=64 "
      "actor_rollout_ref.rollout.n=4 trainer.n_gpus_per_node=8 ";
  const std::string flag = dynamic ? "=True " : "=False ";
  for (const std::string role : {"actor_rollout_ref.actor", "critic"}) {
    words += role + ".use_dynamic_bsz" + flag + role + ".ppo_micro_batch_size_per_gpu=4 ";
  }
  for (const std::string role : {"actor_rollout_ref.rollout", "actor_rollout_ref.ref"}) {
    words +=
        role + ".log_prob_use_dynamic_bsz" + flag + role + ".log_prob_micro_batch_size_per_gpu=4 ";
  }
  if (!megatron) return words;
  words += "model_engine=megatron ";
  for (const std::string role : {"actor_rollout_ref.actor", "actor_rollout_ref.ref", "critic"}) {
    words += role + ".megatron.tensor_model_parallel_size=4 ";
  }
  return words;
}

struct KeyValue {
  int engines = 0;  // 1 = FSDP, 2 = Megatron
  std::string key, word;
};

std::vector<KeyValue> other_values() {
  std::ifstream lines(TESSERA_SOURCE_DIR "/tests/planner/interop/fixtures/verl_other_values.txt");
  std::vector<KeyValue> values;
  for (KeyValue one; lines >> one.engines >> one.word;) {
    one.key = one.word.substr(0, one.word.find('='));
    values.push_back(one);
  }
  return values;
}

TEST(ImportVerl, TakesNothingInSilenceThatCosts) {
  const std::vector<KeyValue> values = other_values();
  ASSERT_GT(values.size(), 500U);
  for (const bool megatron : {false, true}) {
    for (const KeyValue& one : values) {
      if ((one.engines & (megatron ? 2 : 1)) == 0 || may_be_silent(one.key)) continue;
      bool told = false;
      for (const bool dynamic : {true, false}) {
        const std::string words = job(megatron, dynamic);
        told = told || words.find(one.key + "=") != words.npos ||
               said(words + one.word) != said(words);
      }
      EXPECT_TRUE(told) << (megatron ? "megatron " : "fsdp ") << one.word;
    }
  }
}

std::optional<Plan> read_plan_of(const std::string& text, const std::string& file) {
  Problems problems;
  const ImportOptions options{.cluster = *read_cluster_spec("h800-8", problems)};
  const auto made = import_config(text, file, options, problems);
  EXPECT_TRUE(made) << (problems.empty() ? "" : to_string(problems.front()));
  return made ? std::optional(made->plan) : std::nullopt;
}

// trainer/ppo/ray_trainer.py: the actor then makes no pass over what was generated before it
// learns.
TEST(ImportVerl, BypassModeScoresNothingWithTheOldPolicy) {
  for (const bool in_reward : {false, true}) {
    std::string words = "python3 -m verl.trainer.main_ppo " + job(false, true) +
                        "algorithm.rollout_correction.bypass_mode=True\n";
    if (in_reward) words.insert(words.size() - 1, " algorithm.use_kl_in_reward=True");
    const auto plan = read_plan_of(words, "a.sh");
    ASSERT_TRUE(plan);
    for (const ScheduledCall& call : plan->schedule) EXPECT_NE(call.phase, Phase::old_log_prob);
    EXPECT_EQ(plan->schedule.size(), 8U)
        << "gen, reshard, ref, values, reward, adv and two updates";
    const std::string yaml = text_of(must_export(*plan, target_of("verl")), "verl.yaml");
    EXPECT_NE(yaml.find("bypass_mode: true"), yaml.npos);
    const auto again = read_plan_of(yaml, "verl.yaml");
    ASSERT_TRUE(again);
    EXPECT_EQ(again->workload.dataflow, plan->workload.dataflow);
  }
}

}  // namespace
}  // namespace tessera
