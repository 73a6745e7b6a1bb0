#include "planner/interop/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "planner/plan/schedule.h"
#include "tests/planner/interop/imported.h"
#include "tests/planner/interop/random_plans.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

TEST(Import, RefusesAsynchronousTrainersThatAPlanCannotSay) {
  const std::string start =
      "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=qwen2.5-7b "
      "algorithm.adv_estimator=grpo trainer.v1.trainer_mode=";
  const Problems colocated = refusals(start + "colocate_async\n", "a.sh");
  EXPECT_THAT(colocated[0].hint, HasSubstr("buffer"));
  const Problems steps =
      refusals(start + "separate_async trainer.v1.separate_async.parameter_sync_step=3\n", "a.sh");
  EXPECT_THAT(steps[0].expected, HasSubstr("= 4"));
  const Problems lent = refusals(
      start + "separate_async trainer.v1.separate_async.hybrid_rollout.enable_switch=True\n",
      "a.sh");
  EXPECT_THAT(lent[0].found, HasSubstr("enable_switch"));
  const Imported imported = must_import(
      start +
          "separate_async actor_rollout_ref.hybrid_engine=False "
          "actor_rollout_ref.rollout.nnodes=1 actor_rollout_ref.rollout.n_gpus_per_node=4\n",
      "a.sh", h800());
  const RolePlan& rollout = *imported.plan.find(Role::rollout);
  EXPECT_EQ(rollout.ranks, (std::vector<int>{8, 9, 10, 11}));
  EXPECT_TRUE(is_one_step_off(imported.plan.schedule));
  EXPECT_FALSE(imported.plan.reshard[0].keep);  // its cache is freed while weights arrive
}

TEST(Import, TakesSettingsThatOnlyARunWouldTell) {
  const std::string script =
      "python3 -m verl.trainer.main_ppo "
      "actor_rollout_ref.model.path=Qwen/Qwen2.5-Coder-7B-Instruct "
      "trainer.nnodes=$SLURM_JOB_NUM_NODES algorithm.adv_estimator=grpo\n";
  const Problems problems = refusals(script, "a.sh");
  EXPECT_THAT(problems[0].hint, HasSubstr("--set trainer.nnodes=VALUE"));
  ImportOptions options = h800();
  options.settings = {"trainer.nnodes=2", "+data.seed=1"};
  EXPECT_EQ(must_import(script, "a.sh", options).plan.roles[0].ranks.size(), 16U);
  options.settings = {"trainer.nodes=2"};
  Problems unknown;
  EXPECT_FALSE(import_config(script, "a.sh", options, unknown));
  EXPECT_THAT(unknown[0].hint, HasSubstr("trainer.nnodes"));
  EXPECT_EQ(unknown[0].place, "--set");
}

TEST(Import, NotesWhatTheToolItselfRefuses) {
  for (const char* script :
       {"vllm serve qwen2.5-7b --tensor-parallel-size 3\n",
        "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=qwen2.5-7b "
        "actor_rollout_ref.rollout.tensor_model_parallel_size=8 algorithm.adv_estimator=grpo\n"}) {
    const Imported imported = must_import(script, "a.sh", h800());
    EXPECT_TRUE(std::any_of(imported.notes.begin(), imported.notes.end(), [](const auto& note) {
      return note.find("28 query heads") != note.npos;
    })) << script;
  }
}

TEST(Import, PlansTheRecipesWithARolloutPoolOneStepAhead) {
  const std::string settings =
      " actor_rollout_ref.model.path=qwen2.5-7b algorithm.adv_estimator=grpo trainer.nnodes=1 "
      "trainer.n_gpus_per_node=6 rollout.nnodes=1 rollout.n_gpus_per_node=2 "
      "actor_rollout_ref.actor.ppo_mini_batch_size=96 ";
  const Imported one = must_import("python3 -m verl.experimental.one_step_off_policy.main_ppo" +
                                       settings + "data.train_batch_size=1152\n",
                                   "a.sh", h800());
  EXPECT_EQ(one.plan.find(Role::rollout)->ranks, (std::vector<int>{6, 7}));
  EXPECT_TRUE(is_one_step_off(one.plan.schedule));
  EXPECT_EQ(one.plan.workload.mini_batches, 12);
  // A step is what is trained between two weight updates: require_batches x trigger mini-batches.
  const Imported fully =
      must_import("python3 -m verl.experimental.fully_async_policy.fully_async_main" + settings +
                      "data.train_batch_size=0 async_training.require_batches=2 "
                      "async_training.trigger_parameter_sync_step=8\n",
                  "a.sh", h800());
  EXPECT_TRUE(is_one_step_off(fully.plan.schedule));
  EXPECT_EQ(fully.plan.workload.mini_batches, 16);
  EXPECT_EQ(fully.plan.workload.prompts_per_step, 16 * 96);
  EXPECT_THAT(refusals("python3 -m verl.trainer.main_ppo" + settings, "a.sh")[0].found,
              HasSubstr("rollout.n"));
}

TEST(Import, NamesAProgramOfVerlThatTrainsByNoReward) {
  const Problems problems = refusals(
      "torchrun --nproc_per_node=8 \\\n -m verl.trainer.sft_trainer \\\n data.train_files=a\n",
      "sft.sh");
  EXPECT_EQ(problems[0].found, "verl.trainer.sft_trainer");
  EXPECT_EQ(problems[0].place, "2");
}

TEST(Import, ReadsACommandBehindAVariableAsACommand) {
  const Imported imported = must_import(
      "PYTHONUNBUFFERED=1 python3 -m verl.trainer.main_ppo \\\n"
      " actor_rollout_ref.model.path=qwen2.5-7b \\\n trainer.n_gpus_per_node=1 \\\n"
      " actor_rollout_ref.rollout.tensor_model_parallel_size=1\n",
      "run.sh", h800());
  EXPECT_EQ(imported.plan.roles[0].ranks.size(), 1U);
}

TEST(Import, CountsMicroBatchesOfSequencesByTheMeanThatIsGiven) {
  const std::string script =
      "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=qwen2.5-7b "
      "algorithm.adv_estimator=grpo data.max_prompt_length=512 data.max_response_length=1024 "
      "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=25 "
      "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1\n";
  EXPECT_EQ(must_import(script, "a.sh", h800()).plan.roles[0].batching.update_tokens, 25 * 1536);
  ImportOptions options = h800();
  options.response_mean = 200;
  const Batching mean = must_import(script, "a.sh", options).plan.roles[0].batching;
  EXPECT_NEAR(mean.update_tokens, 25 * 712 + 3 * 100 * 5, 10);  // cv 0.5, hardly cut at 1,024
  EXPECT_EQ(mean.log_prob_tokens, 1536);                        // one sequence may be the longest
}

TEST(Import, ReadsAScriptWithDefaultsArraysAndArithmetic) {
  const Imported imported = must_import(R"(#!/usr/bin/env bash
set -x
NGPUS=${NGPUS:-8}
MODEL_PATH=${MODEL_PATH:-"Qwen/Qwen2.5-7B-Instruct"}
max_prompt=1024; max_response=$((1024 * 2))
limit=$(( (max_prompt + max_response) * 4 ))
DATA=(
    data.train_files=$HOME/data/train.parquet   # only a run knows HOME
    data.train_batch_size=1024
    data.max_prompt_length=${max_prompt}
    data.max_response_length="${max_response}"
)
python3 -m verl.trainer.main_ppo \
    algorithm.adv_estimator=grpo \
    "${DATA[@]}" \
    actor_rollout_ref.model.path="$MODEL_PATH" \
    actor_rollout_ref.actor.use_dynamic_bsz=True \
    actor_rollout_ref.actor.ppo_max_token_len_per_gpu=$limit \
    actor_rollout_ref.actor.ppo_mini_batch_size=256 \
    actor_rollout_ref.actor.use_kl_loss=True \
    actor_rollout_ref.actor.fsdp_config.param_offload=False \
    actor_rollout_ref.rollout.tensor_model_parallel_size=2 \
    actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=5 \
    trainer.logger='["console","wandb"]' \
    trainer.n_gpus_per_node=$NGPUS trainer.nnodes=2 $@ 2>&1 | tee log.txt
)",
                                        "run.sh", h800());
  const Plan& plan = imported.plan;
  ASSERT_EQ(plan.roles.size(), 3U);
  EXPECT_EQ(plan.workload.algorithm, "grpo");
  EXPECT_EQ(plan.workload.response_tokens.max, 2048);
  EXPECT_EQ(plan.workload.mini_batches, 4);
  EXPECT_EQ(plan.roles[0].ranks.size(), 16U);
  EXPECT_EQ(plan.roles[0].layout.dp_shard, 16);
  EXPECT_EQ(plan.roles[0].batching.update_tokens, 12288);
  EXPECT_EQ(plan.roles[0].recompute, Recompute::full);  // verl's default
  EXPECT_EQ(plan.roles[1].layout.tp, 2);
  EXPECT_EQ(plan.roles[1].layout.dp, 8);
  EXPECT_EQ(plan.roles[2].role, Role::reference);
  EXPECT_TRUE(std::any_of(imported.notes.begin(), imported.notes.end(), [](const std::string& n) {
    return n.find("planned as the preset qwen2.5-7b") != n.npos;
  }));
}

TEST(Import, SaysWhichKeysVerlIgnores) {
  const Imported imported = must_import(R"(actor_rollout_ref.model.path=qwen2.5-7b
actor_rollout_ref.actor.use_dynamic_bsz=true
actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4
actor_rollout_ref.ref.fsdp_config.param_offload=false
algorithm.use_kl_in_reward=true
critic.ppo_max_token_len_per_gpu=1000
critic.forward_micro_batch_size_per_gpu=2
)",
                                        "overrides.txt", h800());
  std::vector<std::string> keys;
  for (const IgnoredKey& key : imported.ignored) {
    keys.push_back(key.key + "@" + key.place);
    EXPECT_GT(key.why.size(), 10U);
  }
  EXPECT_THAT(
      keys, ::testing::UnorderedElementsAre(
                "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu@3",
                "actor_rollout_ref.ref.fsdp_config.param_offload@4",
                "critic.ppo_max_token_len_per_gpu@6", "critic.forward_micro_batch_size_per_gpu@7"));
  // verl's default of ppo_infer_max_token_len_per_gpu, not the 1000 that it never reads.
  EXPECT_EQ(imported.plan.find(Role::critic)->batching.update_tokens, 32768);
  EXPECT_TRUE(imported.plan.find(Role::reference)->offload.parameters);
}

TEST(Import, RefusesUnknownKeysWithASuggestion) {
  const Problems problems = refusals(
      "actor_rollout_ref.model.path=qwen2.5-7b\nactor_rollout_ref.rollout.tensor_model_paralel_"
      "size=2"
      "\nactor_rollout_ref.rollout.engine=vllm\nactor_rollout_ref.actor.megatron.param_offload="
      "true\n",
      "o.txt");
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_THAT(problems[0].hint, HasSubstr("model_engine=megatron"));
  EXPECT_THAT(problems[1].hint, HasSubstr("actor_rollout_ref.rollout.name"));
  EXPECT_EQ(problems[2].place, "2");
  EXPECT_EQ(problems[2].hint,
            "did you mean 'actor_rollout_ref.rollout.tensor_model_parallel_size'?");
  ImportOptions lenient = h800();
  lenient.allow_unknown = true;
  Problems none;
  EXPECT_TRUE(import_config("actor_rollout_ref.model.path=qwen2.5-7b\na.b=1\n"
                            "algorithm.adv_estimator=grpo\n",
                            "o.txt", lenient, none)
                  .has_value());
}

/// Overrides of a GRPO job, one a line.
const char* const kOverrides =
    "actor_rollout_ref.model.path=qwen2.5-7b\nalgorithm.adv_estimator=grpo\n"
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1\n"
    "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1\n"
    "actor_rollout_ref.rollout.tensor_model_parallel_size=4\n";

TEST(Import, NamesTheLineOfAListThatIsNoOverride) {
  const Problems bad = refusals(std::string(kOverrides) + "noequals\n", "l.txt");
  ASSERT_EQ(bad.size(), 1U);
  EXPECT_EQ(bad[0].place, "6");
  EXPECT_THAT(bad[0].found, HasSubstr("noequals"));
  // ~key deletes, so verl's own default (2) stands.
  const std::string text = std::string(kOverrides) +
                           "~actor_rollout_ref.rollout.tensor_model_parallel_size\n"
                           "~data.train_files\n";
  const Imported read = must_import(text, "l.txt", on(RandomPlans("verl", 4).next()));
  EXPECT_EQ(read.plan.find(Role::rollout)->layout.tp, 2);
}

TEST(Import, SaysWhereAJobIsLargerThanTheCluster) {
  Problems problems;
  ImportOptions options;
  options.cluster = *read_cluster_spec("h800-8", problems);
  const std::string job = std::string(kOverrides) + "trainer.n_gpus_per_node=8\ntrainer.nnodes=";
  const auto notes = [&](const char* nodes) {
    std::string all;
    for (const std::string& note : must_import(job + nodes + "\n", "l.txt", options).notes) {
      all += note + "\n";
    }
    return all;
  };
  EXPECT_THAT(notes("2"), HasSubstr("takes 16 GPUs, the cluster h800-8 has 8: planned on 2"));
  EXPECT_THAT(notes("1"), Not(HasSubstr("planned on")));
}

TEST(Import, PutsPoolsOnTheGpuTypesThatAreNamed) {
  Problems problems;
  ImportOptions options;
  options.cluster = *read_cluster_spec("a100-h100-64", problems);
  const std::string job =
      std::string(kOverrides) +
      "actor_rollout_ref.actor.ppo_mini_batch_size=64\ndata.train_batch_size=256\n"
      "trainer.n_gpus_per_node=8\ntrainer.nnodes=4\n"
      "trainer.v1.trainer_mode=separate_async\nactor_rollout_ref.hybrid_engine=False\n"
      "actor_rollout_ref.rollout.nnodes=4\nactor_rollout_ref.rollout.n_gpus_per_node=8\n";
  const Imported given = must_import(job, "l.txt", options);
  const std::string first = options.cluster.groups[0].device.name,
                    second = options.cluster.groups[1].device.name;
  EXPECT_EQ(given.plan.find(Role::actor)->gpu_types, std::vector<std::string>{first});
  EXPECT_TRUE(std::any_of(given.notes.begin(), given.notes.end(), [&](const std::string& note) {
    return note.find("trainer on " + first + ", rollout on " + second) != note.npos;
  }));
  options.gpu_types = {{"trainer", second}, {"rollout", first}};
  const Imported moved = must_import(job, "l.txt", options);
  EXPECT_EQ(moved.plan.find(Role::actor)->gpu_types, std::vector<std::string>{second});
  EXPECT_EQ(moved.plan.find(Role::actor)->ranks.front(), 32);
  EXPECT_EQ(moved.plan.find(Role::rollout)->gpu_types, std::vector<std::string>{first});
  options.gpu_types = {{"trainer", second}, {"rollout", second}};
  EXPECT_FALSE(import_config(job, "l.txt", options, problems).has_value());
  ASSERT_FALSE(problems.empty());
  EXPECT_THAT(problems[0].found, HasSubstr("too few GPUs of " + second));
}

TEST(Import, FollowsReferencesAndRefusesCyclesAndUnknowableValues) {
  const std::string head = "actor_rollout_ref:\n  model: {path: qwen2.5-7b}\n  rollout:\n    n: ";
  EXPECT_EQ(must_import(head + "\"${oc.select:data.copies,7}\"\nalgorithm: {adv_estimator: grpo}\n",
                        "a.yaml", h800())
                .plan.workload.samples_per_prompt,
            7);
  const Problems cycle =
      refusals(head + "\"${data.a}\"\ndata: {a: \"${data.b}\", b: \"${data.a}\"}\n", "a.yaml");
  EXPECT_TRUE(std::any_of(cycle.begin(), cycle.end(),
                          [](const Problem& p) { return p.found.find("cycle") != p.found.npos; }));
  const Problems unknown = refusals(
      "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=qwen2.5-7b \\\n"
      " trainer.nnodes=$(wc -l < hosts)\n",
      "a.sh");
  EXPECT_EQ(unknown[0].place, "2");
  EXPECT_THAT(unknown[0].found, HasSubstr("$(wc -l < hosts)"));
}

}  // namespace
}  // namespace tessera
