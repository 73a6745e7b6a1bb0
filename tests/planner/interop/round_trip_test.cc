// Plans that are exported and read back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/fit/derived_calibration.h"
#include "cost_models/lengths.h"
#include "planner/explain/planner.h"
#include "planner/interop/export.h"
#include "planner/interop/import.h"
#include "planner/interop/price.h"
#include "planner/pricing/evaluate.h"
#include "planner/pricing/iteration.h"
#include "planner/pricing/plan_pricing.h"
#include "planner/request/candidate.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"
#include "tests/planner/interop/imported.h"
#include "tests/planner/interop/random_plans.h"
#include "tests/planner/interop/target_of.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

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
    EXPECT_EQ(made.roles[i].fsdp, read.roles[i].fsdp);
    EXPECT_EQ(made.roles[i].no_sync, read.roles[i].no_sync);
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
  for (const char* engine : {"verl", "verl-megatron", "verl-veomni", "verl-torchtitan"}) {
    RandomPlans plans(engine, 2026);
    for (int i = 0; i < 150; ++i) {
      Plan plan = plans.next();
      if (i % 3 == 2) plan = with_rollout_apart(std::move(plan));
      Problems problems;
      const auto made = export_plan(plan, target_of(engine), {}, problems);
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
  EXPECT_EQ(plans_read, 1200);
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
    const int cut = tp > 1 ? tp >> random() % 2 : 1;  // as the rest is cut, or by half of that
    const int etp = random() % 2 == 0 && cut * ep <= world / pp ? cut : 1;
    for (RolePlan& role : plan.roles) {
      if (role.model != "actor") continue;
      ParallelLayout& layout = role.layout;
      const int zero = layout.zero;
      if (role.role == Role::rollout) {
        layout = {{.tp = 2, .dp = world / 2, .ep = 4}};
        layout.stages = even_stages(experts->layers, 1, 1);
      } else {
        layout = {{.tp = tp, .pp = pp, .dp = world / tp / pp, .ep = ep, .etp = etp}};
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

}  // namespace
}  // namespace tessera
