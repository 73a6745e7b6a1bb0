// Plans of the own executor whose rollout vLLM's servers generate: what the pair takes of each, and
// what is refused before a run.
#include <gmock/gmock.h>

#include <filesystem>

#include "cost_models/documents/document.h"
#include "planner/engines/engine_check.h"
#include "planner/engines/read_plan.h"
#include "planner/plan/plan_json.h"
#include "planner/pricing/evaluate.h"
#include "tests/planner/planned.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kPair = "tessera+vllm";

PlanRequest pair_request(const std::string& cluster = "h100-8") {
  return by_engine(request_for(cluster), kPair);
}

/// A plan with the fixed layouts, by an engine.
Plan plan_by(const std::string& engine, const std::vector<std::string>& more = {}) {
  PlanRequest request = by_engine(pair_request(), engine);
  std::vector<std::string> words{
      "placement=colocated",    "actor.tp=2",           "actor.pp=1",
      "actor.zero=1",           "actor.recompute=full", "actor.tokens=8192",
      "reference.tokens=8192",  "reference.tp=2",       "reference.pp=1",
      "reference.offload=none", "rollout.tp=2",         "rollout.max_sequences=64"};
  words.insert(words.end(), more.begin(), more.end());
  request.fixed = settings(words);
  return planned(request);
}

// Decoding is the server's, all that trains the executor's.
TEST(TesseraAndVllm, TrainsAsTheOneAndGeneratesAsTheOther) {
  const Plan pair = plan_by(kPair), own = plan_by("tessera");
  EXPECT_TRUE(outside_capabilities(pair).empty());
  for (const auto& [phase, seconds] : own.prediction.phases_s) {
    if (phase == Phase::gen || phase == Phase::reshard) continue;
    EXPECT_EQ(pair.prediction.phases_s.at(phase), seconds) << name_of(phase);
  }
  const auto generation = [&](const char* engine, PromptDealing prompts) {
    const PlanRequest request = by_engine(pair_request(), engine);
    Candidate rollout{{.tp = 2, .dp = 4}, Role::rollout, 8};
    rollout.tokens = 16384;
    rollout.max_sequences = 64;
    EXPECT_EQ(engine_named(engine).prompts, prompts);
    CostEvaluator costs(request);
    return costs.seconds(rollout)[Phase::gen];
  };
  // Prompts are dealt evenly here, so that both ways to deal them are one.
  EXPECT_EQ(generation(kPair, PromptDealing::whole_prompts),
            generation("vllm", PromptDealing::requests));
  EXPECT_GT(generation(kPair, PromptDealing::whole_prompts),
            generation("tessera", PromptDealing::whole_prompts));
}

// A server that does not sleep keeps its cache, one that sleeps keeps neither cache nor weights.
TEST(TesseraAndVllm, AServerThatDoesNotSleepKeepsItsShareOfTheGpu) {
  const Plan awake = plan_by(kPair, {"rollout.offload=none"});
  const Plan asleep = plan_by(kPair, {"rollout.offload=all"});
  const auto held = [](const Plan& plan) {
    return plan.find(Role::rollout)->memory.at(Phase::update_actor);
  };
  const MemoryUse generating = awake.find(Role::rollout)->memory.at(Phase::gen);
  EXPECT_EQ(held(awake).kv_cache, generating.kv_cache);
  EXPECT_EQ(held(awake).weights, generating.weights);
  EXPECT_EQ(held(asleep).kv_cache + held(asleep).weights, Bytes{});
  EXPECT_TRUE(awake.reshard.front().keep);
  EXPECT_FALSE(asleep.reshard.front().keep);
  EXPECT_EQ(awake.reshard.front().mode, ReshardMode::minimal);
  // What the sleeping process keeps is memory of nobody's account.
  EXPECT_GT(engine_named(kPair).memory.outside, engine_named("tessera").memory.outside);
}

// 28 query heads and 4 KV heads: 7 and 14 workers divide the first and not the second.
TEST(TesseraAndVllm, WhatAServerCannotHoldIsRefusedWithItsReason) {
  PlanRequest request = pair_request();
  request.fixed = settings({"rollout.tp=8"});
  EXPECT_THAT(refused(request).reasons,
              ElementsAre(AllOf(HasSubstr("rollout.tp=8 is beyond engine 'tessera+vllm'"),
                                HasSubstr("28 query heads"), HasSubstr("engine tessera or any"))));
  request.engine = "tessera";
  EXPECT_EQ(planned(request).find(Role::rollout)->layout.tp, 8);
  Plan plan = planned(request);
  const Problems problems = outside_capabilities(plan, "plan", kPair);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].place, "/roles/1/layout/tp");
  EXPECT_THAT(problems[0].hint, HasSubstr("28 query heads"));

  request = pair_request();
  request.fixed = settings({"actor.offload=all"});
  EXPECT_THAT(refused(request).reasons, ElementsAre(HasSubstr("none or optimizer")));
}

TEST(TesseraAndVllm, ServersReadMemoryOfTheirOwnHostAlone) {
  PlanRequest request = pair_request("h100-64");
  Problems problems;
  EXPECT_FALSE(make_plan(request, problems));
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0].hint, HasSubstr("their own host"));
  request.engine = std::string(kAnyEngine);
  EXPECT_NE(planned(request).engine, kPair);
}

TEST(TesseraAndVllm, TheRunnerTakesItsPlansAndJudgesOthersByItsOwnEngine) {
  const std::filesystem::path file =
      std::filesystem::path(testing::TempDir()) / "tessera_vllm_plan.json";
  const auto executable = [&](const Plan& tried) {
    write_text_file(file, to_json(tried));
    Problems problems;
    read_executable_plan(file, problems);
    std::string all;
    for (const Problem& problem : problems) all += to_string(problem) + "\n";
    return all;
  };
  Plan plan = plan_by(kPair);
  EXPECT_THAT(executable(plan),
              HasSubstr(":/models/actor/path: found 'qwen2.5-7b', no such folder"));
  for (auto& [name, source] : plan.models) source.path = testing::TempDir();
  EXPECT_EQ(executable(plan), "");
  for (RolePlan& role : plan.roles) role.offload.parameters = role.role == Role::actor;
  EXPECT_THAT(executable(plan), HasSubstr("reads them on the device"));
  plan.engine = "verl";
  EXPECT_EQ(executable(plan), "");
}

}  // namespace
}  // namespace tessera
