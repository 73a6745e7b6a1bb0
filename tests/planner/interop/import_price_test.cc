// What an imported plan takes of time and memory.
#include <gtest/gtest.h>

#include <string>

#include "cost_models/documents/problem.h"
#include "planner/engines/read_plan.h"
#include "planner/interop/import.h"
#include "planner/interop/price.h"
#include "tests/planner/interop/imported.h"

namespace tessera {
namespace {

TEST(Price, CountsNoMoreSequencesThanARolloutHoldsOrHas) {
  const std::string script =
      "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=qwen2.5-7b "
      "algorithm.adv_estimator=grpo actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 "
      "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1 "
      "actor_rollout_ref.rollout.tensor_model_parallel_size=1 "
      "data.max_response_length=8000 actor_rollout_ref.rollout.max_num_seqs=";
  Problems problems;
  const auto calibration = find_calibration("h800", problems);
  const auto counted = [&](const std::string& slots) {
    Plan plan = must_import(script + slots + "\n", "a.sh", h800()).plan;
    EXPECT_TRUE(price(plan, *calibration).fits);
    EXPECT_LE(plan.find(Role::rollout)->memory.at(Phase::gen).total(),
              plan.cluster.device.memory.value);
    return plan.find(Role::rollout)->batching.max_sequences;
  };
  EXPECT_EQ(counted("16"), 16);
  const std::int64_t held = counted("1024");  // 1024 prompts on 8 replicas would be 128
  EXPECT_LT(held, 128);
  EXPECT_GT(held, 32);
  EXPECT_EQ(counted(std::to_string(held)), held);
}

// A stage of 34 of 37 layers holds 34 of them, and all micro-batches wait for it.
TEST(Price, StagesOfMegatronsTextAreThoseThatArePriced) {
  const std::string actor = "actor_rollout_ref.actor.megatron.";
  Problems problems;
  const auto calibration = find_calibration("h800", problems);
  struct Priced {
    bool fits;
    std::int64_t update;
    Seconds passes;
  };
  const auto priced = [&](const std::string& stages) {
    const std::string script =
        "python3 -m verl.trainer.main_ppo model_engine=megatron algorithm.adv_estimator=grpo "
        "actor_rollout_ref.model.path=qwen2.5-14b actor_rollout_ref.actor.use_kl_loss=true "
        "actor_rollout_ref.actor.use_dynamic_bsz=true data.max_prompt_length=1024 "
        "data.max_response_length=1024 actor_rollout_ref.actor.ppo_max_token_len_per_gpu=2048 "
        "actor_rollout_ref.rollout.tensor_model_parallel_size=4 " +
        actor + "tensor_model_parallel_size=2 " + actor + "pipeline_model_parallel_size=4 \"+" +
        actor + "override_transformer_config.pipeline_model_parallel_layout='" + stages + "'\"\n";
    Plan plan = must_import(script, "a.sh", h800()).plan;
    const Pricing pricing = price(plan, *calibration);
    for (const std::string& note : pricing.notes) {
      EXPECT_EQ(note.find("stages"), std::string::npos) << note;
    }
    return Priced{pricing.fits, plan.find(Role::actor)->memory.at(Phase::update_actor).total(),
                  plan.prediction.phases_s.at(Phase::old_log_prob)};
  };
  const Priced even = priced("Et*12|t*12|t*12|t*12L"), uneven = priced("Et|t|t*45|tL");
  EXPECT_TRUE(even.fits);
  EXPECT_FALSE(uneven.fits);
  EXPECT_GT(2 * uneven.update, 5 * even.update);
  EXPECT_GT(uneven.passes, 2 * even.passes);
}

TEST(Price, AnImportedPlanHasMemoryAndAStepTime) {
  Problems problems;
  const auto cluster = read_cluster_spec("h800-8", problems);
  auto imported = must_import(
      "actor_rollout_ref.model.path=qwen2.5-7b\nalgorithm.adv_estimator=grpo\n"
      "actor_rollout_ref.actor.use_dynamic_bsz=true\nactor_rollout_ref.actor.use_kl_loss=true\n"
      "actor_rollout_ref.rollout.n=5\ndata.max_prompt_length=1024\ndata.max_response_length=1024\n",
      "o.txt", {.cluster = *cluster});
  const auto calibration = find_calibration("h800", problems);
  ASSERT_TRUE(calibration.has_value());
  const Pricing pricing = price(imported.plan, *calibration);
  EXPECT_GT(imported.plan.prediction.step_s, 1);
  EXPECT_GT(imported.plan.prediction.peak_bytes, std::int64_t{10} << 30);
  // Weights of 7.6e9 parameters in two bytes, gathered whole on TP2: half of them arrive at least.
  EXPECT_GT(imported.plan.reshard[0].bytes_received, 7'000'000'000);
  EXPECT_TRUE(imported.plan.reshard[0].digest.empty());  // verl's gather, not ranges of ours
  EXPECT_LT(imported.plan.reshard[0].lower_bound_bytes, imported.plan.reshard[0].bytes_received);
  EXPECT_TRUE(pricing.fits) << pricing.notes.back();
  Problems none;
  validate(imported.plan, "plan", none);
  EXPECT_TRUE(none.empty());
}

}  // namespace
}  // namespace tessera
