// verl's own scripts in the small: what earlier versions wrote, engines that are not planned, and
// how servers and Megatron cut experts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "cost_models/documents/problem.h"
#include "planner/interop/import.h"
#include "planner/interop/price.h"
#include "planner/request/plan_value.h"

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

struct Read {
  std::optional<Imported> imported;
  Problems problems;

  const RolePlan& role(Role role) const { return *imported->plan.find(role); }
  std::string told() const { return Error(ExitCode::bad_input, problems).what(); }
};

Read read(const std::string& text, const std::string& file = "a.sh") {
  Problems none;
  const ImportOptions options{.cluster = *read_cluster_spec("h800-64", none)};
  Read made;
  made.imported = import_config(text, file, options, made.problems);
  return made;
}

std::string grpo(const std::string& model, const std::string& rest) {
  return "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=64 "
         "actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.model.path=" +
         model + " actor_rollout_ref.actor.use_dynamic_bsz=True " + rest + "\n";
}

TEST(ImportVerl, KeysOfEarlierVersionsAreToldAndTheRestIsRead) {
  const Read made =
      read(grpo("Qwen/Qwen3-8B",
                "model_engine=megatron actor_rollout_ref.actor.megatron.grad_offload=True "
                "actor_rollout_ref.rollout.update_weights_bucket_megabytes=512 "
                "trainer.use_legacy_worker_impl=auto"));
  ASSERT_TRUE(made.imported) << made.told();
  std::vector<std::string> gone;
  for (const IgnoredKey& one : made.imported->ignored) gone.push_back(one.key + ": " + one.why);
  EXPECT_THAT(gone, Contains(HasSubstr("megatron.grad_offload: verl 0.9.0 had it")));
  EXPECT_THAT(gone, Contains(HasSubstr("trainer.use_legacy_worker_impl: verl 0.7.1 had it")));
  EXPECT_EQ(made.imported->plan.reshard[0].bucket_bytes, std::int64_t{512} << 20);
}

// The models that verl's example scripts of 2026 name, and others of their families.
TEST(ImportVerl, ModelsOfEveryFamilyAreFoundByTheirHubNames) {
  for (const auto& [name, family] :
       std::map<std::string, std::string>{{"Qwen/Qwen3-VL-8B-Instruct", "qwen3_vl"},
                                          {"Qwen/Qwen3-VL-30B-A3B-Instruct", "qwen3_vl_moe"},
                                          {"/verl/models/Qwen3.5-27B", "qwen3_5"},
                                          {"/model/Qwen3.5-35B-A3B", "qwen3_5_moe"},
                                          {"Qwen/Qwen3.5-397B-A17B", "qwen3_5_moe"},
                                          {"Qwen/Qwen3-Next-80B-A3B-Instruct", "qwen3_next"},
                                          {"ByteDance-Seed/Seed-OSS-36B-Base", "seed_oss"},
                                          {"zai-org/GLM-4.5-Air", "glm4_moe"},
                                          {"zai-org/GLM-4.1V-9B-Thinking", "glm4v"},
                                          {"XiaomiMiMo/MiMo-7B-RL", "mimo"},
                                          {"nvidia/Nemotron-H-8B-Base-8K", "nemotron_h"},
                                          {"google/gemma-2-9b-it", "gemma2"},
                                          {"google/gemma-3-1b-it", "gemma3_text"},
                                          {"microsoft/Phi-3-mini-4k-instruct", "phi3"},
                                          {"microsoft/phi-4", "phi3"},
                                          {"allenai/OLMo-2-1124-13B-Instruct", "olmo2"},
                                          {"allenai/Olmo-3-1125-32B", "olmo3"},
                                          {"zai-org/GLM-4.7-Flash", "glm4_moe_lite"},
                                          {"moonshotai/Kimi-K2-Instruct", "deepseek_v3"}}) {
    const Read made = read(grpo(name, "actor_rollout_ref.rollout.tensor_model_parallel_size=8"));
    ASSERT_TRUE(made.imported) << name << made.told();
    EXPECT_EQ(name_of(made.imported->plan.models.at("actor").spec.family), family) << name;
  }
  const Read unknown = read(grpo("openbmb/MiniCPM-o-2_6", ""));
  EXPECT_FALSE(unknown.imported);
  EXPECT_THAT(unknown.told(), HasSubstr("a model's folder, its config.json or a preset"));
}

TEST(ImportVerl, ASharesOfMemoryIsANumber) {
  for (const char* share : {"nan", ".nan", "inf", "0", "1.5", "much"}) {
    const Read made = read(grpo("Qwen/Qwen3-8B",
                                "actor_rollout_ref.rollout."
                                "gpu_memory_utilization=" +
                                    std::string(share)));
    EXPECT_FALSE(made.imported) << share;
    EXPECT_THAT(made.told(), HasSubstr("gpu_memory_utilization = ")) << share;
  }
}

TEST(ImportVerl, RecomputedModulesAreReadAsPlansCountThem) {
  const auto recompute = [](const char* model, const std::string& modules) {
    const std::string block = "+actor_rollout_ref.actor.megatron.override_transformer_config.";
    const Read made = read(grpo(
        model, "model_engine=megatron " + block + "recompute_granularity=selective " + modules));
    EXPECT_TRUE(made.imported) << made.told();
    return made.imported ? made.role(Role::actor).recompute : Recompute::full;
  };
  const std::string key =
      "actor_rollout_ref.actor.megatron.override_transformer_config.recompute_modules=";
  EXPECT_EQ(recompute("Qwen/Qwen3-30B-A3B", key + "[moe_act]"), Recompute::selective);
  EXPECT_EQ(recompute("Qwen/Qwen3-30B-A3B", key + "[core_attn,moe]"), Recompute::selective);
  EXPECT_EQ(recompute("Qwen/Qwen3-30B-A3B", ""), Recompute::none);
  EXPECT_EQ(recompute("Qwen/Qwen3-8B", key + "[core_attn]"), Recompute::selective);
}

/// experimental/reward_loop/reward_loop.py (migrate_legacy_reward_impl) of the 0.9.1 wheel.
TEST(ImportVerl, ARewardModelUnderItsFormerNamesIsPlanned) {
  const Read made = read(grpo(
      "Qwen/Qwen2.5-7B-Instruct",
      "reward_model.enable=True reward_model.model.path=Skywork/Skywork-Reward-Llama-3.1-8B "
      "reward_model.rollout.tensor_model_parallel_size=4 critic.model.fsdp_config.fsdp_size=8"));
  ASSERT_TRUE(made.imported) << made.told();
  EXPECT_EQ(made.imported->plan.models.at("reward").spec.layers, 32);
  EXPECT_EQ(made.role(Role::reward).layout.tp, 4);
  EXPECT_THAT(
      made.imported->notes,
      Contains("reward_model.enable is read as reward.reward_model.enable, its name in verl "
               "0.9.1, which does not read the former one."));
}

TEST(ImportVerl, AnEngineThatIsNotPlannedIsOneProblemAndHidesNoOther) {
  for (const char* how : {"model_engine=automodel", "actor_rollout_ref.actor.strategy=mindspeed"}) {
    const Read made = read(grpo(
        "no/such",
        std::string(how) + " actor_rollout_ref.actor.veomni.fsdp_size=8 data.train_batch_size=65"));
    ASSERT_FALSE(made.imported) << how;
    EXPECT_EQ(made.problems.size(), 3U) << made.told();
    EXPECT_THAT(made.told(), HasSubstr("expected FSDP, Megatron, VeOmni or torchtitan"));
    EXPECT_THAT(made.told(), HasSubstr("no/such"));
    EXPECT_THAT(made.told(), HasSubstr("a divisor of data.train_batch_size = 65"));
  }
}

TEST(ImportVerl, ReplicasOfTheRolloutTakeAnyNumberOfPrompts) {
  const Read made = read(grpo("Qwen/Qwen3-8B",
                              "trainer.n_gpus_per_node=8 trainer.nnodes=6 "
                              "actor_rollout_ref.rollout.n=3 "
                              "actor_rollout_ref.rollout.tensor_model_parallel_size=2"));
  ASSERT_TRUE(made.imported) << made.told();
  EXPECT_EQ(made.role(Role::rollout).layout.dp, 24);  // of 64 prompts
}

TEST(ImportVerl, AMiniBatchThatDoesNotDivideIsRefusedWhereItStands) {
  const Read made = read("\n" + grpo("Qwen/Qwen3-8B", "trainer.n_gpus_per_node=6"));
  ASSERT_FALSE(made.imported);
  EXPECT_EQ(made.problems[0].place, "2");
  EXPECT_THAT(made.told(), HasSubstr("ppo_mini_batch_size = 64 sequences"));
  EXPECT_THAT(made.told(), HasSubstr("a multiple of the actor's 6 data-parallel ranks"));
}

/// Megatron's expert_tensor_parallel_size is tp where it is null; vLLM cuts every expert over all
/// GPUs of a server unless expert parallelism is on (FusedMoEParallelConfig.make).
TEST(ImportVerl, ExpertsAreCutAsTheirEnginesCutThem) {
  const std::string megatron =
      "model_engine=megatron actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4 ";
  const Read whole = read(grpo("Qwen/Qwen3-30B-A3B", megatron));
  ASSERT_TRUE(whole.imported) << whole.told();
  EXPECT_EQ(whole.role(Role::actor).layout.etp, 4);
  EXPECT_EQ(whole.role(Role::rollout).layout.etp, 2);  // verl's default tp
  const Read spread =
      read(grpo("Qwen/Qwen3-30B-A3B",
                megatron + "actor_rollout_ref.actor.megatron.expert_model_parallel_size=8 "
                           "actor_rollout_ref.actor.megatron.expert_tensor_parallel_size=1 "
                           "actor_rollout_ref.rollout.tensor_model_parallel_size=4 "
                           "actor_rollout_ref.rollout.expert_parallel_size=4"));
  ASSERT_TRUE(spread.imported) << spread.told();
  EXPECT_EQ(spread.role(Role::actor).layout.etp, 1);
  EXPECT_EQ(spread.role(Role::rollout).layout.ep, 4);
  EXPECT_EQ(spread.role(Role::rollout).layout.etp, 1);
  const std::string halves =
      "actor_rollout_ref.rollout.tensor_model_parallel_size=4 "
      "actor_rollout_ref.rollout.expert_parallel_size=2 actor_rollout_ref.rollout.name=";
  const Read both = read(grpo("Qwen/Qwen3-30B-A3B", halves + "trtllm"));
  ASSERT_TRUE(both.imported) << both.told();
  EXPECT_EQ(both.role(Role::rollout).layout.etp, 2);
  EXPECT_THAT(read(grpo("Qwen/Qwen3-30B-A3B", halves + "vllm")).told(),
              HasSubstr("tensor x data parallel = 4"));
}

TEST(ImportVerl, ANumberBeyond64BitsHidesNoOtherProblem) {
  const Read made = read(
      "actor_rollout_ref:\n"
      "  model: {path: no/such}\n"
      "  actor: {ppo_mini_batch_size: 99999999999999999999}\n"
      "data: {max_prompt_length: -1, max_response_length: 9223372036854775808}\n",
      "a.yaml");
  ASSERT_FALSE(made.imported);
  EXPECT_THAT(made.told(), HasSubstr("a.yaml:3:32: found 99999999999999999999"));
  EXPECT_THAT(made.told(), HasSubstr("found 9223372036854775808"));
  EXPECT_THAT(made.told(), HasSubstr("data.max_prompt_length = -1"));
  EXPECT_THAT(made.told(), HasSubstr("no/such"));
}

Read priced(const std::string& rest) {
  Read made = read(grpo("Qwen/Qwen3-8B",
                        "actor_rollout_ref.actor.strategy=fsdp2 actor_rollout_ref.rollout.n=4 "
                        "data.max_prompt_length=1024 data.max_response_length=3072 "
                        "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=16384 " +
                            rest));
  Problems problems;
  if (made.imported) {
    price(made.imported->plan, *find_calibration("h800", problems), made.imported->memory_share);
  }
  return made;
}

// free_cache_engine=false: an inference server that never sleeps.
TEST(ImportVerl, AServerThatNeverSleepsKeepsWeightsAndCacheWhileTraining) {
  const Read asleep = priced(""),
             awake = priced("actor_rollout_ref.rollout.free_cache_engine=False");
  ASSERT_TRUE(asleep.imported && awake.imported) << awake.told();
  EXPECT_FALSE(asleep.imported->plan.reshard[0].keep);
  EXPECT_TRUE(awake.imported->plan.reshard[0].keep);
  const auto held = [](const Read& made, Phase phase) {
    return made.role(Role::rollout).memory.at(phase);
  };
  const MemoryUse serving = held(awake, Phase::gen), training = held(awake, Phase::update_actor);
  EXPECT_GT(serving.kv_cache, 0);
  EXPECT_EQ(training.kv_cache, serving.kv_cache);
  EXPECT_EQ(training.weights, serving.weights);
  EXPECT_EQ(held(asleep, Phase::update_actor).kv_cache, 0);
  EXPECT_EQ(held(asleep, Phase::update_actor).weights, 0);
  EXPECT_GT(awake.imported->plan.prediction.peak_bytes,
            asleep.imported->plan.prediction.peak_bytes);
}

// 151,936 columns: all rows of 16,384 tokens in bf16 (the gradient overwrites them). With 512 rows
// at a time the loss is no more where an update needs most: a layer's backward pass is.
TEST(ImportVerl, FusedKernelsNeverHoldWholeLogits) {
  const Read whole = priced(""), fused = priced("actor_rollout_ref.model.use_fused_kernels=True");
  ASSERT_TRUE(whole.imported && fused.imported) << fused.told();
  EXPECT_TRUE(fused.role(Role::actor).fused_loss);
  EXPECT_TRUE(fused.imported->ignored.empty());
  const auto logits = [](const Read& made, Phase phase) {
    return made.role(Role::actor).memory.at(phase).logits;
  };
  EXPECT_EQ(logits(whole, Phase::update_actor), std::int64_t{16384} * 151936 * 2);
  EXPECT_EQ(logits(fused, Phase::update_actor), 0);
  const auto update = [](const Read& made) {
    return made.role(Role::actor).memory.at(Phase::update_actor).total();
  };
  EXPECT_LT(update(fused), update(whole));
  EXPECT_LT(logits(fused, Phase::old_log_prob), logits(whole, Phase::old_log_prob) / 10);
}

// Between micro-batches whole gradients stay, in 16 bits under FSDP1, and no layer's are reduced
// (tests/planner/pricing/fsdp_test.cc).
TEST(ImportVerl, GradientsThatAreReducedOnceAMiniBatchStayWhole) {
  const std::string key =
      "actor_rollout_ref.actor.fsdp_config.use_no_sync_for_gradient_accumulation";
  const Read every = read(grpo("Qwen/Qwen3-8B", "")),
             once = read(grpo("Qwen/Qwen3-8B", key + "=True"));
  ASSERT_TRUE(every.imported && once.imported) << once.told();
  EXPECT_FALSE(every.role(Role::actor).no_sync);
  EXPECT_TRUE(once.role(Role::actor).no_sync);
  EXPECT_EQ(once.told().find("no_sync"), std::string::npos);
}

// verl's default is FSDP1, whose root keeps both ends gathered: at the loss the embedding beside
// the head (tests/cost_models/transformers/fsdp_root_test.cc).
TEST(ImportVerl, TheFirstFsdpKeepsBothEndsGathered) {
  const std::string loss = " actor_rollout_ref.actor.use_kl_loss=True",
                    ref = "actor_rollout_ref.ref.", actor = "actor_rollout_ref.actor.strategy=";
  const auto fsdp = [&](const std::string& rest, Role role) {
    const Read made = read(grpo("Qwen/Qwen3-8B", rest + loss));
    EXPECT_TRUE(made.imported) << made.told();
    return made.imported ? made.role(role).fsdp : Fsdp{};
  };
  EXPECT_EQ(fsdp("", Role::actor), Fsdp::fsdp1);
  EXPECT_EQ(fsdp("", Role::reference), Fsdp::fsdp1);
  EXPECT_EQ(fsdp("", Role::rollout), Fsdp::fsdp2);
  EXPECT_EQ(fsdp(actor + "fsdp2", Role::reference), Fsdp::fsdp2);
  EXPECT_EQ(fsdp(actor + "fsdp2 " + ref + "strategy=fsdp", Role::reference), Fsdp::fsdp1);
  const Read first = priced(actor + "fsdp"), second = priced("");
  ASSERT_TRUE(first.imported && second.imported) << first.told();
  const auto gathered = [](const Read& made, Phase phase) {
    return made.role(Role::actor).memory.at(phase).gathered;
  };
  const std::int64_t end = std::int64_t{151936} * 4096, norm = 4096;
  EXPECT_EQ(gathered(first, Phase::update_actor) - gathered(second, Phase::update_actor),
            2 * (end + norm));
  EXPECT_EQ(gathered(first, Phase::old_log_prob) - gathered(second, Phase::old_log_prob),
            2 * (end + norm));
}

// examples/grpo_trainer/run_deepseek_v3_671b_megatron.sh of verl 0.9.0: "minimum 12 nodes x 8 x 80
// GB" GPUs. Its step is computed by the hosts, its logits are never whole, and Megatron-LM reduces
// gradients where they lie.
TEST(ImportVerl, DeepSeekV3FitsTheTwelveNodesThatItsScriptAsksFor) {
  const auto script = [](const char* host) {
    const std::string text =
        "python3 -m verl.trainer.main_ppo model_engine=megatron algorithm.adv_estimator=grpo "
        "data.train_batch_size=96 data.max_prompt_length=2048 data.max_response_length=8192 "
        "actor_rollout_ref.model.path=deepseek-ai/DeepSeek-V3 trainer.nnodes=12 "
        "trainer.n_gpus_per_node=8 actor_rollout_ref.model.use_fused_kernels=True "
        "actor_rollout_ref.actor.ppo_mini_batch_size=32 actor_rollout_ref.actor.use_kl_loss=True "
        "actor_rollout_ref.actor.use_dynamic_bsz=True "
        "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=10240 "
        "actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu=10240 "
        "actor_rollout_ref.ref.log_prob_max_token_len_per_gpu=10240 "
        "actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=8 "
        "actor_rollout_ref.rollout.tensor_model_parallel_size=32 "
        "actor_rollout_ref.rollout.gpu_memory_utilization=0.6 ";
    std::string more;
    for (const char* const role : {"actor", "ref"}) {
      const std::string block = std::string("actor_rollout_ref.") + role + ".megatron.";
      more += block + "tensor_model_parallel_size=8 " + block + "pipeline_model_parallel_size=12 " +
              block + "expert_model_parallel_size=8 " + block + "expert_tensor_parallel_size=1 " +
              block + "param_offload=True ";
    }
    const std::string actor = "actor_rollout_ref.actor.megatron.";
    const std::string config = " +" + actor + "override_transformer_config.";
    return text + more + actor + "optimizer_offload=True" + config + "recompute_granularity=full" +
           config + "recompute_method=uniform" + config + "recompute_num_layers=1" + config +
           "num_layers_in_last_pipeline_stage=6 " + host + "\n";
  };
  const std::string key = "+actor_rollout_ref.actor.optim.override_optimizer_config.optimizer_";
  Problems problems;
  const auto needs = [&](const std::string& host) {
    Read made = read(script(host.c_str()));
    EXPECT_TRUE(made.imported) << made.told();
    if (!made.imported) return std::pair{false, MemoryUse{}};
    Plan& plan = made.imported->plan;
    const bool fits =
        price(plan, *find_calibration("h800", problems), made.imported->memory_share).fits;
    return std::pair{fits, made.role(Role::actor).memory.at(Phase::update_actor)};
  };
  const auto [fits, by_host] = needs(key + "cpu_offload=True " + key + "offload_fraction=1.0");
  const auto [whole_fits, whole] = needs("");
  EXPECT_TRUE(fits);
  EXPECT_EQ(by_host.optimizer + by_host.master_weights, 0);
  EXPECT_EQ(by_host.gradients, whole.gradients);
  EXPECT_EQ(whole.gradients, 2 * whole.weights);  // fp32, once
  EXPECT_FALSE(whole_fits);
}

// The stages of verl's example of DeepSeek-V4 on Megatron, whose 43 layers no 8 equal ones make.
TEST(ImportVerl, StagesAreThoseThatMegatronsTextStates) {
  const std::string actor = "actor_rollout_ref.actor.megatron.";
  const std::string script =
      grpo("deepseek-ai/DeepSeek-V4-Flash",
           "model_engine=megatron actor_rollout_ref.rollout.tensor_model_parallel_size=8 " + actor +
               "pipeline_model_parallel_size=8 \"++" + actor +
               "override_transformer_config.pipeline_model_parallel_layout="
               "'Et*6|t*6|t*6|t*5|t*5|t*5|t*5|t*5L'\"");
  const Read made = read(script);
  ASSERT_TRUE(made.imported) << made.told();
  const std::vector<LayerRange>& stages = made.role(Role::actor).layout.stages;
  ASSERT_EQ(stages.size(), 8U);
  EXPECT_EQ(stages[2], (LayerRange{12, 18}));
  EXPECT_EQ(stages[7], (LayerRange{38, 43}));
  std::string wrong = script;
  wrong.replace(wrong.find("t*5L"), 4, "t*4L");
  const Read refused = read(wrong);
  EXPECT_FALSE(refused.imported);
  EXPECT_THAT(refused.told(), HasSubstr("43 decoder layers (t) in 8 stages (|)"));
}

}  // namespace
}  // namespace tessera
