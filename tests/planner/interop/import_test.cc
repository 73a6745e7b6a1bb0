#include "planner/interop/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cost_models/documents/preset.h"
#include "cost_models/fit/derived_calibration.h"
#include "cost_models/lengths.h"
#include "planner/engines/read_plan.h"
#include "planner/explain/planner.h"
#include "planner/interop/export.h"
#include "planner/interop/price.h"
#include "planner/interop/shell/shell_words.h"
#include "planner/plan/hub_name.h"
#include "planner/plan/one_step_off.h"
#include "planner/pricing/evaluate.h"
#include "planner/pricing/iteration.h"
#include "planner/pricing/plan_pricing.h"
#include "planner/request/candidate.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"
#include "tests/planner/interop/random_plans.h"
#include "tests/planner/interop/target_of.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

ImportOptions on(const Plan& plan) { return {.cluster = plan.cluster}; }

ImportOptions h800() {
  Problems none;
  return {.cluster = *read_cluster_spec("h800-64", none)};
}

Imported must_import(std::string_view text, const std::string& file, const ImportOptions& options) {
  Problems problems;
  auto imported = import_config(text, file, options, problems);
  EXPECT_TRUE(imported.has_value()) << Error(ExitCode::bad_input, problems).what();
  return imported ? *std::move(imported) : Imported{};
}

Problems refusals(std::string_view text, const std::string& file) {
  Problems problems;
  EXPECT_FALSE(import_config(text, file, h800(), problems).has_value());
  EXPECT_FALSE(problems.empty());
  return problems.empty() ? Problems{{}} : problems;
}

std::string described(const RolePlan& role) {
  const Batching& b = role.batching;
  std::string text =
      std::string(name_of(role.role)) + " " + describe(role.layout) + " sp" +
      std::to_string(role.layout.sequence_parallel) + " on " + std::to_string(role.ranks.size()) +
      " from " + std::to_string(role.ranks.front()) + " recompute " +
      std::string(name_of(role.recompute)) + " offload " + std::to_string(role.offload.parameters) +
      std::to_string(role.offload.gradients) + std::to_string(role.offload.optimizer);
  for (const std::int64_t n : {b.mini_batch, b.update_tokens, b.log_prob_tokens, b.values_tokens,
                               b.reward_tokens, b.prefill_tokens, b.max_sequences}) {
    text += " " + std::to_string(n);
  }
  for (const LayerRange& range : role.layout.stages) text += " ..." + std::to_string(range.last);
  return text + " " + std::string(name_of(role.dtypes.param));
}

void expect_same(const Plan& made, const Plan& read) {
  ASSERT_EQ(made.roles.size(), read.roles.size());
  for (std::size_t i = 0; i < made.roles.size(); ++i) {
    EXPECT_EQ(described(made.roles[i]), described(read.roles[i]));
    EXPECT_EQ(made.roles[i].ranks, read.roles[i].ranks);
    EXPECT_EQ(made.roles[i].dtypes, read.roles[i].dtypes);
    EXPECT_EQ(made.roles[i].fused_loss, read.roles[i].fused_loss);
    EXPECT_EQ(made.roles[i].host_optimizer, read.roles[i].host_optimizer);
    EXPECT_EQ(made.models.at(made.roles[i].model).spec, read.models.at(read.roles[i].model).spec);
  }
  const Workload &a = made.workload, &b = read.workload;
  EXPECT_EQ(a.algorithm, b.algorithm);
  EXPECT_EQ(a.dataflow, b.dataflow);
  EXPECT_EQ(a.prompts_per_step, b.prompts_per_step);
  EXPECT_EQ(a.samples_per_prompt, b.samples_per_prompt);
  EXPECT_EQ(a.prompt_tokens, b.prompt_tokens);
  EXPECT_EQ(a.response_tokens.max, b.response_tokens.max);
  EXPECT_EQ(a.mini_batches, b.mini_batches);
  EXPECT_EQ(a.epochs, b.epochs);
  EXPECT_EQ(a.kl, b.kl);
  EXPECT_EQ(made.engine, read.engine);
  EXPECT_EQ(made.schedule, read.schedule);
  EXPECT_EQ(made.reshard[0].keep, read.reshard[0].keep);
}

TEST(RoundTrip, ExportThenImportGivesTheSamePlan) {
  int plans_read = 0;
  for (const char* engine : {"verl", "verl-megatron"}) {
    RandomPlans plans(engine, 2026);
    for (int i = 0; i < 150; ++i) {
      Plan plan = plans.next();
      if (i % 3 == 2) plan = with_rollout_apart(std::move(plan));
      const ExportTarget target =
          std::string_view(engine) == "verl" ? target_of("verl") : target_of("verl-megatron");
      Problems problems;
      const auto made = export_plan(plan, target, {}, problems);
      ASSERT_TRUE(made.has_value()) << Error(ExitCode::bad_input, problems).what();
      for (const ExportedFile& file : made->files) {
        if (file.name == "NOTES.md") continue;
        SCOPED_TRACE(std::string(engine) + " " + std::to_string(i) + " " + file.name);
        const Imported back = must_import(file.text, file.name, on(plan));
        ASSERT_FALSE(back.plan.roles.empty());
        expect_same(plan, back.plan);
        EXPECT_TRUE(std::all_of(back.ignored.begin(), back.ignored.end(), [](const IgnoredKey& k) {
          return k.key == "actor_rollout_ref.ref.fsdp_config.param_offload";
        }));
        if (HasFailure()) return;
        ++plans_read;
      }
    }
  }
  EXPECT_EQ(plans_read, 600);
}

// Experts over EP (and their tensors over ETP) in training, over TP x data parallel in the rollout.
/// What the search plans for verl is what verl does and what its files say: whole tensors in
/// buckets, replicas on neighbouring ranks, the same variables.
TEST(RoundTrip, OfPlansOfTheSearchKeepsSwitchRanksAndEnvironment) {
  for (const char* engine : {"verl", "verl-megatron"}) {
    SCOPED_TRACE(engine);
    Problems problems;
    PlanRequest request;
    request.models["actor"] = {*read_model_spec("qwen2.5-7b", problems), "qwen2.5-7b", ""};
    request.cluster = *read_cluster_spec("h200-8", problems);
    request.workload = *read_workload("grpo-7b-1k", problems);
    request.calibration = *calibration_for_cluster(request.cluster, problems);
    request.engine = engine;
    const char* cut = request.engine == "verl" ? "actor.zero=3" : "actor.pp=2";
    request.fixed = parse_settings(
        std::vector<std::string>{cut, "rollout.tp=2", "rollout.offload=all"}, problems);
    const Plan plan = std::get<Plan>(*make_plan(request, problems));
    ASSERT_EQ(plan.reshard.size(), 1U);
    const PlannedReshard& planned = plan.reshard[0];
    EXPECT_EQ(planned.mode, ReshardMode::full);
    EXPECT_GT(planned.bytes_received, planned.lower_bound_bytes);
    EXPECT_GT(planned.peak_bytes, planned.bucket_bytes);
    const Export made = *export_plan(plan, *export_target_from(engine, problems), {}, problems);
    for (const ExportedFile& file : made.files) {
      if (file.name == "NOTES.md") continue;
      Imported back = must_import(file.text, file.name, on(plan));
      price(back.plan, request.calibration, back.memory_share);
      EXPECT_EQ(back.plan.reshard, plan.reshard) << file.name;
      for (const RolePlan& role : plan.roles) {
        EXPECT_EQ(back.plan.find(role.role)->rank_order, role.rank_order) << name_of(role.role);
        EXPECT_EQ(nodes_of(plan, role, request), GroupNodes{}) << name_of(role.role);
      }
      EXPECT_EQ(back.plan.environment, plan.environment);
      EXPECT_DOUBLE_EQ(back.plan.prediction.phases_s.at(Phase::reshard),
                       plan.prediction.phases_s.at(Phase::reshard));
    }
    // Less moves for an engine that moves only what is missing.
    PlanRequest other = request;
    other.engine = "any";
    CostEvaluator verl(request), any(other);
    const Candidate actor = candidate_of(plan, *plan.find(Role::actor));
    const Candidate rollout = candidate_of(plan, *plan.find(Role::rollout));
    EXPECT_GT(verl.reshard_seconds(actor, rollout, true),
              1.2 * any.reshard_seconds(actor, rollout, true));
  }
}

/// The reward model beside the actor sleeps in host memory, as verl's RewardModelManager has it;
/// the FSDP reference always waits there.
TEST(RoundTrip, OfAPlanWithARewardModelFitsAndTakesAsLong) {
  Problems problems;
  PlanRequest request;
  request.models["actor"] = {*read_model_spec("qwen2.5-vl-7b", problems), "qwen2.5-vl-7b", ""};
  request.cluster = *read_cluster_spec("h800-16", problems);
  request.workload = *read_workload("grpo-reward-vl", problems);
  request.models["reward"] = request.models["actor"];
  request.calibration = *calibration_for_cluster(request.cluster, problems);
  request.engine = "verl";
  const Plan plan = std::get<Plan>(*make_plan(request, problems));
  EXPECT_TRUE(plan.find(Role::reward)->offload.parameters);
  ASSERT_NE(plan.find(Role::reference), nullptr);
  EXPECT_TRUE(plan.find(Role::reference)->offload.parameters);
  const Export made = *export_plan(plan, target_of("verl"), {}, problems);
  for (const ExportedFile& file : made.files) {
    if (file.name == "NOTES.md") continue;
    ImportOptions options = on(plan);
    options.response_mean = mean_length(plan.workload.response_tokens);
    Imported back = must_import(file.text, file.name, options);
    EXPECT_EQ(back.plan.find(Role::reward)->offload, plan.find(Role::reward)->offload);
    EXPECT_EQ(back.plan.find(Role::reference)->offload, plan.find(Role::reference)->offload);
    const Pricing priced = price(back.plan, request.calibration, back.memory_share);
    EXPECT_TRUE(priced.fits) << (priced.notes.empty() ? "" : priced.notes.front());
  }
}

TEST(RoundTrip, OfExpertParallelPlansGivesTheSamePlan) {
  Problems problems;
  const auto experts =
      read_model_spec(std::string(TESSERA_SOURCE_DIR) + "/configs/models/qwen3-30b-a3b", problems);
  RandomPlans plans("verl-megatron", 2027);
  std::mt19937 random(3);
  for (int i = 0; i < 40; ++i) {
    Plan plan = plans.next();
    while (plan.roles[0].ranks.size() < 8) plan = plans.next();
    plan.models["actor"] = {*experts, "qwen3-30b-a3b", ""};
    const auto world = static_cast<int>(plan.roles[0].ranks.size());
    const int tp = 1 << random() % 3, pp = 1 << random() % 2, ep = 2 << random() % 2;
    const int etp = tp > 1 && random() % 2 == 0 && tp * ep <= world / pp ? tp : 1;
    for (RolePlan& role : plan.roles) {
      if (role.model != "actor") continue;
      ParallelLayout& layout = role.layout;
      const int zero = layout.zero;
      if (role.role == Role::rollout) {
        layout = {.tp = 2, .dp_replicate = world / 2, .ep = 4};
        layout.stages = even_stages(experts->layers, 1, 1);
      } else {
        layout = {.tp = tp, .pp = pp, .dp_replicate = world / tp / pp, .ep = ep, .etp = etp};
        layout.zero = zero;
        layout.sequence_parallel = tp > 1;
        layout.stages = even_stages(experts->layers, pp, 1);
        const std::int64_t longest =
            plan.workload.prompt_tokens + plan.workload.response_tokens.max;
        for (std::int64_t* tokens : {&role.batching.update_tokens, &role.batching.log_prob_tokens,
                                     &role.batching.values_tokens}) {
          if (*tokens > 0) *tokens = 2 * longest;
        }
      }
    }
    const auto made = export_plan(plan, target_of("verl-megatron"), {}, problems);
    ASSERT_TRUE(made.has_value()) << Error(ExitCode::bad_input, problems).what();
    EXPECT_TRUE(std::any_of(made->notes.begin(), made->notes.end(), [](const std::string& note) {
      return note.find("routers of trainer and inference engine") != note.npos;
    }));
    for (const ExportedFile& file : made->files) {
      if (file.name == "NOTES.md") continue;
      SCOPED_TRACE(std::to_string(i) + " " + file.name);
      expect_same(plan, must_import(file.text, file.name, on(plan)).plan);
      if (HasFailure()) return;
    }
  }
}

TEST(Export, RefusesARolloutApartThatTheStepWaitsFor) {
  Plan plan = with_rollout_apart(RandomPlans("verl", 5).next());
  plan.schedule = schedule_of(default_schedule(plan.workload), placement_of(plan), 0);
  Problems problems;
  EXPECT_FALSE(export_plan(plan, target_of("verl"), {}, problems).has_value());
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].place, "/schedule");
  EXPECT_THAT(problems[0].hint, HasSubstr("separate_async"));
}

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

TEST(Models, AreFoundByTheirHubNames) {
  const ConfigValues config;
  const std::vector<std::pair<std::string, std::string>> known{
      {"Qwen/Qwen2.5-Math-7B", "qwen2.5-7b"},
      {"/models/Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b"},
      {"mistralai/Mistral-Nemo-Instruct-2407", "mistral-nemo"},
      {"deepseek-ai/deepseek-llm-7b-chat", "deepseek-llm-7b"},
      {"deepseek-ai/DeepSeek-R1", "deepseek-v3"},
      {"Qwen/Qwen2-72B-Instruct", "qwen2.5-72b"},
      {"meta-llama/Meta-Llama-3-8B-Instruct", "llama3.1-8b"}};
  for (const auto& [name, preset] : known) {
    std::vector<std::string> notes;
    Problems problems;
    const auto model = find_model(name, config, "model", notes, problems);
    ASSERT_TRUE(model.has_value()) << name;
    EXPECT_EQ(model->spec, read_model_spec(preset, problems)) << name;
    ASSERT_EQ(notes.size(), 1U);
    EXPECT_THAT(notes[0], HasSubstr(preset));
  }
  std::vector<std::string> notes;
  Problems problems;
  EXPECT_FALSE(find_model("Qwen/Qwen2.5-8B", config, "model", notes, problems));
  EXPECT_EQ(problems.size(), 1U);
}

// What the exporter writes for a preset is read as that preset.
TEST(Models, OfEveryPresetAreFoundByTheirRepository) {
  const ConfigValues config;
  int named = 0;
  for (const std::string& preset : preset_names("models", "")) {
    const std::string repository = hub_name_of_preset(preset);
    if (repository.empty()) continue;
    ++named;
    std::vector<std::string> notes;
    Problems problems;
    const auto model = find_model(repository, config, "model", notes, problems);
    ASSERT_TRUE(model.has_value()) << repository;
    EXPECT_EQ(model->spec, read_model_spec(preset, problems)) << repository;
  }
  EXPECT_GT(named, 30);
}

// 32,000 words instead of 32,768.
TEST(Models, WithAnotherVocabularyAreNotAPreset) {
  for (const char* const name :
       {"mistralai/Mistral-7B-v0.1", "mistralai/Mistral-7B-Instruct-v0.2"}) {
    std::vector<std::string> notes;
    Problems problems;
    EXPECT_FALSE(find_model(name, ConfigValues{}, "model", notes, problems)) << name;
    EXPECT_EQ(problems.size(), 1U);
  }
  std::vector<std::string> notes;
  Problems problems;
  const auto third =
      find_model("mistralai/Mistral-7B-Instruct-v0.3", ConfigValues{}, "model", notes, problems);
  ASSERT_TRUE(third.has_value());
  EXPECT_EQ(third->spec.vocab, 32768);
}

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
  EXPECT_EQ(plan.roles[1].layout.dp(), 8);
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

/// The first file of a plan's export to Megatron-LM, with the plan made into one that its arguments
/// can say: nothing offloaded, whole nodes. nullopt where replicas do not divide the mini-batch.
std::optional<ExportedFile> megatron_script(Plan& plan) {
  const RolePlan& actor = plan.roles[0];
  for (RolePlan& role : plan.roles) role.offload = {};
  plan.cluster.gpus_per_node =
      static_cast<std::int64_t>(std::min<std::size_t>(8, actor.ranks.size()));
  plan.cluster.nodes = static_cast<std::int64_t>(actor.ranks.size()) / plan.cluster.gpus_per_node;
  if (actor.batching.mini_batch % actor.layout.dp() != 0) return std::nullopt;
  Problems problems;
  const auto made = export_plan(plan, target_of("megatron"), {}, problems);
  EXPECT_TRUE(made.has_value()) << Error(ExitCode::bad_input, problems).what();
  return made->files[0];
}

TEST(Import, ReadsMegatronArgumentsOfAnExport) {
  RandomPlans plans("verl-megatron", 77);
  int compared = 0;
  for (int i = 0; i < 60; ++i) {
    Plan plan = plans.next();
    RolePlan& actor = plan.roles[0];
    actor.batching.update_tokens = plan.workload.prompt_tokens + plan.workload.response_tokens.max;
    const auto script = megatron_script(plan);
    if (!script) continue;
    ImportOptions options = on(plan);
    options.model = plan.models.at("actor").path;
    const Imported back = must_import(script->text, script->name, options);
    ASSERT_EQ(back.plan.roles.size(), 1U);
    EXPECT_EQ(back.plan.roles[0].layout, actor.layout);
    EXPECT_EQ(back.plan.roles[0].recompute, actor.recompute);
    EXPECT_EQ(back.plan.roles[0].batching.update_tokens, actor.batching.update_tokens);
    EXPECT_EQ(back.plan.roles[0].batching.mini_batch, actor.batching.mini_batch);
    ++compared;
  }
  EXPECT_GT(compared, 30);
}

// Megatron-LM's examples: arrays that are expanded without quotes, an 8-bit format, and GPT-3's
// vocabulary by its files.
TEST(Import, ReadsMegatronsOwnExamples) {
  const std::string layers =
      "ARGS=('--num-layers 4' --hidden-size 256 --num-attention-heads 8 --seq-length 512\n"
      "  --max-position-embeddings 512 --micro-batch-size 1 --global-batch-size 8 --bf16)\n";
  const Imported fp8 = must_import(
      layers +
          "FP8=()\nif [[ fp8 == \"fp8\" ]]; then FP8+=('--fp8-format hybrid' "
          "'--fp8-amax-compute-algo max' --fp8-param-gather); fi\n"
          "DATA=('--vocab-size 128256' \"--tokenizer-type NullTokenizer\")\n"
          "torchrun --nproc_per_node 8 pretrain_gpt.py ${ARGS[@]} ${FP8[@]} ${DATA[@]}\n",
      "a.sh", h800());
  EXPECT_EQ(fp8.plan.models.at("actor").spec.vocab, 128256);
  EXPECT_EQ(fp8.plan.models.at("actor").spec.layers, 4);
  EXPECT_THAT(fp8.notes, ::testing::Contains(HasSubstr("--fp8-format hybrid: the layers' products "
                                                       "run in 8 bit")));
  const Imported gpt =
      must_import(layers +
                      "torchrun --nproc_per_node 8 pretrain_gpt.py ${ARGS[@]} --vocab-file v.json "
                      "--merge-file m.txt --tokenizer-type GPT2BPETokenizer\n",
                  "a.sh", h800());
  EXPECT_EQ(gpt.plan.models.at("actor").spec.vocab, 50257);
  EXPECT_EQ(
      refusals(layers + "torchrun pretrain_gpt.py ${ARGS[@]} --vocab-file v.json\n", "a.sh").size(),
      1U);
}

// Only what plans of the model count on is recomputation to them.
TEST(Import, ReadsTheModulesThatMegatronRecomputes) {
  const auto read = [](const std::string& flags, std::vector<std::string>& notes) {
    ImportOptions options = h800();
    options.model = "qwen3-30b-a3b";
    const Imported made = must_import(
        "torchrun --nproc_per_node 8 pretrain_gpt.py --seq-length 512 --micro-batch-size 1 "
        "--global-batch-size 8 --bf16 " +
            flags + "\n",
        "a.sh", options);
    notes = made.notes;
    return made.plan.roles[0].recompute;
  };
  std::vector<std::string> notes;
  const std::string selective = "--recompute-granularity selective --recompute-modules ";
  EXPECT_EQ(read(selective + "moe_act", notes), Recompute::selective);
  EXPECT_THAT(notes, ::testing::Not(::testing::Contains(HasSubstr("recompute_modules"))));
  EXPECT_EQ(read(selective + "moe_act layernorm", notes), Recompute::selective);
  EXPECT_THAT(notes, ::testing::Contains(HasSubstr("[moe_act, layernorm] is priced as")));
  EXPECT_EQ(read("--recompute-activations", notes), Recompute::none);
  EXPECT_THAT(notes, ::testing::Contains(HasSubstr("[core_attn] is priced as no recomputation")));
}

TEST(Import, BuildsAModelFromMegatronArgumentsWhereTheySuffice) {
  RandomPlans plans("verl-megatron", 78);
  int compared = 0;
  for (int i = 0; i < 20; ++i) {
    Plan plan = plans.next();
    const RolePlan& actor = plan.roles[0];
    const ModelSpec& spec = plan.models.at("actor").spec;
    if (spec.moe || spec.mla || spec.vision) continue;
    const auto script = megatron_script(plan);
    if (!script) continue;
    const Imported back = must_import(script->text, script->name, on(plan));
    ASSERT_EQ(back.plan.roles.size(), 1U);
    EXPECT_EQ(back.plan.roles[0].layout, actor.layout);
    EXPECT_EQ(parameter_count(back.plan.models.at("actor").spec), parameter_count(spec));
    ++compared;
  }
  EXPECT_GT(compared, 5);
  const Problems missing = refusals("torchrun pretrain_gpt.py --num-layers 4 --swiglu\n", "a.sh");
  ASSERT_EQ(missing.size(), 3U);
  EXPECT_THAT(missing[0].hint, HasSubstr("--vocab-size"));
}

TEST(Import, ReadsTheServersOfAnExport) {
  for (const ExportTarget& target : {target_of("vllm"), target_of("sglang")}) {
    RandomPlans plans("verl", 79);
    for (int i = 0; i < 20; ++i) {
      const Plan plan = plans.next();
      const RolePlan& rollout = *plan.find(Role::rollout);
      Problems problems;
      const auto made = export_plan(plan, target, {}, problems);
      ASSERT_TRUE(made.has_value()) << Error(ExitCode::bad_input, problems).what();
      const Imported back = must_import(made->files[0].text, "serve.sh", on(plan));
      ASSERT_EQ(back.plan.roles.size(), 1U);
      const RolePlan& served = back.plan.roles[0];
      EXPECT_EQ(served.role, Role::rollout);
      EXPECT_EQ(served.layout.tp, rollout.layout.tp);
      EXPECT_EQ(served.layout.pp, rollout.layout.pp);
      EXPECT_EQ(served.layout.ep, rollout.layout.ep);
      EXPECT_EQ(served.batching.max_sequences, rollout.batching.max_sequences);
      EXPECT_EQ(back.plan.workload.prompt_tokens + back.plan.workload.response_tokens.max,
                plan.workload.prompt_tokens + plan.workload.response_tokens.max);
      EXPECT_EQ(back.plan.models.at("actor").spec.layers, plan.models.at("actor").spec.layers);
    }
  }
}

// Of the exported share of the memory the pool of the plan is left, in which as many live.
TEST(Import, APagedRolloutComesBackWithTheSequencesThatLiveInItsCache) {
  Problems problems;
  PlanRequest request;
  request.models["actor"] = {*read_model_spec("qwen2.5-7b", problems), "qwen2.5-7b", ""};
  request.cluster = *read_cluster_spec("h800-8", problems);
  request.workload = *read_workload("grpo-7b-1k", problems);
  request.workload.response_tokens = {3000, 0.5, 32768};
  request.calibration = *calibration_for_cluster(request.cluster, problems);
  request.engine = "verl";
  const auto outcome = make_plan(request, problems);
  ASSERT_TRUE(outcome && std::holds_alternative<Plan>(*outcome));
  const Plan& plan = std::get<Plan>(*outcome);
  const RolePlan& rollout = *plan.find(Role::rollout);
  const std::int64_t slots = rollout.batching.max_sequences;
  // Cut by TP, a GPU holds that part of a token's 57,344 bytes.
  const std::int64_t token = 57344 / rollout.layout.tp;
  const std::int64_t longest =
      rollout.memory.at(Phase::gen).kv_cache.value / token / (1024 + 32768);
  EXPECT_GT(slots, 3 * longest);
  const auto made = export_plan(plan, target_of("verl"), {}, problems);
  ASSERT_TRUE(made.has_value()) << Error(ExitCode::bad_input, problems).what();
  std::string script;
  for (const auto& file : made->files) {
    if (file.name == "run.sh") script = file.text;
  }
  EXPECT_THAT(script, HasSubstr("rollout.max_num_seqs=" + std::to_string(slots)));
  ImportOptions options = on(plan);
  options.response_mean = 3000;  // with the same spread
  Imported back = must_import(script, "run.sh", options);
  const Pricing pricing = price(back.plan, request.calibration, back.memory_share);
  EXPECT_TRUE(pricing.fits);
  EXPECT_EQ(back.plan.find(Role::rollout)->batching.max_sequences, slots);
  EXPECT_NEAR(
      back.plan.prediction.phases_s.at(Phase::gen) / plan.prediction.phases_s.at(Phase::gen), 1,
      1e-3);
}

TEST(Import, ReadsServerCommandsAndPricesThem) {
  Imported vllm = must_import(
      "vllm serve qwen2.5-7b -tp 4 --max-num-seqs=64 --max-model-len 4096 --dtype bfloat16\n",
      "a.sh", h800());
  EXPECT_EQ(vllm.plan.engine, "vllm");
  EXPECT_EQ(vllm.plan.roles[0].layout.tp, 4);
  EXPECT_EQ(vllm.plan.roles[0].ranks.size(), 4U);
  EXPECT_EQ(vllm.plan.roles[0].batching.max_sequences, 64);
  Problems problems;
  const auto calibration = find_calibration("h800", problems);
  EXPECT_TRUE(price(vllm.plan, *calibration).fits);
  EXPECT_GT(vllm.plan.prediction.step_s, 0);
  const Imported sglang = must_import(
      "python3 -m sglang.launch_server --model-path qwen2.5-7b --tp 2 --dp 2 "
      "--mem-fraction-static 0.8\n",
      "b.sh", h800());
  EXPECT_EQ(sglang.plan.engine, "sglang");
  EXPECT_EQ(sglang.plan.roles[0].layout.tp, 2);
  EXPECT_EQ(sglang.plan.roles[0].layout.dp(), 2);
  // Eight GPUs, of which pairs cut attention; every expert on one GPU, 256 slots for all parts.
  const Imported parts = must_import(
      "python3 -m sglang.launch_server --model-path qwen3-30b-a3b --tp-size 8 --dp-size 4 "
      "--enable-dp-attention --ep-size 8 --max-running-requests 256\n",
      "e.sh", h800());
  EXPECT_EQ(parts.plan.roles[0].layout.tp, 2);
  EXPECT_EQ(parts.plan.roles[0].layout.dp(), 4);
  EXPECT_EQ(parts.plan.roles[0].layout.ep, 8);
  EXPECT_EQ(parts.plan.roles[0].batching.max_sequences, 64);
  EXPECT_THAT(refusals("python3 -m sglang.launch_server --model-path qwen3-30b-a3b --tp-size 8 "
                       "--dp-size 3 --enable-dp-attention\n",
                       "f.sh")[0]
                  .expected,
              HasSubstr("a divisor of the tensor-parallel size 8"));
  const Problems unknown =
      refusals("vllm serve qwen2.5-7b --tensor-parallel-size $(nproc)\n", "c.sh");
  EXPECT_THAT(unknown[0].found, HasSubstr("$(nproc)"));
  EXPECT_THAT(refusals("vllm serve nobody\n", "d.sh")[0].found, HasSubstr("nobody"));
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

std::vector<std::string> words(std::string_view script) {
  Problems problems;
  std::vector<std::string> all;
  for (const ShellCommand& command : shell_commands(script, "s", problems)) {
    for (const ShellWord& word : command) all.push_back(word.known ? word.text : "?");
  }
  EXPECT_TRUE(problems.empty());
  return all;
}

TEST(ShellWords, AreWhatBashPasses) {
  using V = std::vector<std::string>;
  EXPECT_EQ(words("A=1 B=2\necho $A${B} '$A' \"$A b\" c\\ d"),
            (V{"echo", "12", "$A", "1 b", "c d"}));
  EXPECT_EQ(words("echo ${X:-de f} ${X:-\"g\"} ${A:=9} $A ${A:+set}"),
            (V{"echo", "de", "f", "g", "9", "9", "set"}));
  EXPECT_EQ(words("L=(a 'b c')\nL+=(d)\nrun \"${L[@]}\" x"), (V{"run", "a", "b c", "d", "x"}));
  EXPECT_EQ(words("n=3; f $((n * (2 + 4) / 2 - 1)) $((1/0)) $(date) $UNSET"),
            (V{"f", "8", "?", "?", "?"}));
  EXPECT_EQ(words("a b \\\n  c # no\nd 2>&1 >x <y | e && f"), (V{"a", "b", "c", "d", "e", "f"}));
  EXPECT_EQ(words("cat <<EOF\nnot a=command\nEOF\ng \"$@\" h"), (V{"cat", "g", "h"}));
  EXPECT_EQ(words("if [ 1 ]; then export A=5; fi; k $A"), (V{"[", "1", "]", "k", "5"}));
}

// Each line was given to bash 5.2: printf '<%s>' of the words.
TEST(ShellWords, AreSplitWhereExpansionsStandOutsideOfQuotes) {
  using V = std::vector<std::string>;
  EXPECT_EQ(words("A=\" a=1 \\\n  b=2\n\"; run $A \"$A\" x${A}y $E"),
            (V{"run", "a=1", "b=2", " a=1   b=2\n", "x", "a=1", "b=2", "y", "?"}));
  EXPECT_EQ(words("A='1 2'; B=$A; C=(${A} \"$A\"); run $B. ${C[@]} ${Q:-$A} \"${Q:-$A}\""),
            (V{"run", "1", "2.", "1", "2", "1", "2", "1", "2", "1 2"}));
  EXPECT_EQ(words("C=('--fp8-format hybrid' '' --bf16); D=(\"${C[@]}\" x); run ${C[@]} a${C[@]}b "
                  "\"${C[@]}\" ${D[@]}"),
            (V{"run", "--fp8-format", "hybrid", "--bf16", "a--fp8-format", "hybrid", "--bf16b",
               "--fp8-format hybrid", "", "--bf16", "--fp8-format", "hybrid", "--bf16", "x"}));
  EXPECT_EQ(words("A=; B='  '; run $A $B x ${A:+y}"), (V{"run", "x"}));
  EXPECT_EQ(words("A=\"a=1 b=$HOME/x c=2\"; run $A d=3"), (V{"run", "a=1", "?", "c=2", "d=3"}));
}

TEST(ShellWords, AreThoseOfTheBranchesThatAreTaken) {
  const auto value = [](const std::string& script) { return words(script + "\nrun $X").back(); };
  EXPECT_EQ(value("D=gpu; case \"${D}\" in npu) X=1 ;; gpu|cuda) X=2;; *) X=3; esac"), "2");
  EXPECT_EQ(value("D=b; case $D in\n# two\n(a*) X=1 ;;\n *) X=3 ;;\nesac"), "3");
  EXPECT_EQ(value("M=async; if [ \"$M\" = \"sync\" ]; then X=1; elif [ $M == async ]\nthen X=2; "
                  "else X=3; fi"),
            "2");
  EXPECT_EQ(value("P=4; [ \"$P\" -gt 1 ] && X=2 || X=null"), "2");
  EXPECT_EQ(value("P=1; [ \"$P\" -gt 1 ] && X=2 || X=null"), "null");
  EXPECT_EQ(value("if [[ -n \"$E\" && 1 == 2 || a == a* ]]; then X=1; else X=2; fi"), "1");
  EXPECT_EQ(value("if ! [ -z \"\" ]; then X=1; if true; then X=4; fi; else X=2; fi"), "2");
  EXPECT_EQ(value("N=8 P=3; if (( N % P != 0 )); then X=$((N > 4 ? 5 : 6)); else X=2; fi"), "5");
  EXPECT_EQ(value("X=1; [ a = b ] && { X=2; X=3; }"), "1");
  // What only a run would tell decides nothing: the last one stands.
  EXPECT_EQ(value("if [ -f x ]; then X=1; else X=2; fi"), "2");
  EXPECT_EQ(value("if [ \"$UNSET\" = a ]; then X=1; fi"), "1");
}

// Each in a buffer of exactly its size, for AddressSanitizer.
TEST(ShellWords, ReadEveryBeginningOfAScriptToItsEnd) {
  const std::string script =
      "if [[ a && ! $A ]] || ((1)); then A=; fi; case $A in (a|b) ;; *) { :; } ;; esac\n"
      "A=\nB=(x \"$A\") C+=1; run ${B[@]} $((1 + 2)) `id` 2>&1 <<<word <<E | tee 'l' > f\nE\nD=";
  for (std::size_t size = 0; size <= script.size(); ++size) {
    const std::vector<char> begin(script.begin(), script.begin() + static_cast<long>(size));
    Problems problems;
    const auto commands = shell_commands({begin.data(), begin.size()}, "a.sh", problems);
    EXPECT_LE(commands.size(), 6U) << size;
  }
}

TEST(ShellWords, RefuseWhatDoesNotEndAndGrowsWithoutBound) {
  for (const char* script : {"a 'b", "a \"b", "a $(b", "a ${b", "a $((b", "a `b", "L=(a b"}) {
    Problems problems;
    shell_commands(script, "s.sh", problems);
    EXPECT_EQ(problems.size(), 1U) << script;
  }
  std::string bomb = "a=xxxxxxxxxx\n";
  for (char c = 'a'; c < 'z'; ++c) {
    const std::string next(1, static_cast<char>(c + 1));
    bomb += next + "=";
    for (int i = 0; i < 10; ++i) bomb += "$" + std::string(1, c);
    bomb += "\n";
  }
  Problems problems;
  shell_commands(bomb + "echo $z\n", "s.sh", problems);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0].found, HasSubstr("1 MiB"));
}

}  // namespace
}  // namespace tessera
