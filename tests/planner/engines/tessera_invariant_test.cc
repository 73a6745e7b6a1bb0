// Plans of the own executor whose samples have the same bits in any batch: what the order costs,
// held to measured generation, and which plans there are.
#include <gmock/gmock.h>

#include <limits>

#include "planner/engines/engine_check.h"
#include "planner/pricing/evaluate.h"
#include "tests/planner/planned.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kInvariant(kInvariantEngine);

PlanRequest request_by(const std::string& engine, const std::string& model = "qwen2.5-7b",
                       const std::string& cluster = "h200-8") {
  Problems problems;
  PlanRequest request = request_for(cluster);
  request.models["actor"] = {*read_model_spec(model, problems), model, ""};
  return by_engine(request, engine);
}

/// Of generating with one GPU, all sequences at once, prompts of 1,024 and responses of 512 tokens.
double generation_seconds(const std::string& engine, const char* model, std::int64_t sequences) {
  PlanRequest request = request_by(engine, model, "h200-8");
  request.cluster.gpus_per_node = 1;
  request.workload.prompts_per_step = sequences;
  request.workload.samples_per_prompt = 1;
  request.workload.prompt_tokens = 1024;
  request.workload.response_tokens = {512, 0, 512};
  Candidate rollout;
  rollout.role = Role::rollout;
  rollout.tokens = 16384;
  rollout.max_sequences = sequences;
  return CostEvaluator(request).seconds(rollout)[Phase::gen].value;
}

// Oracle: benchmarks/results/h200-batch-invariant.json, means of two repetitions each.
TEST(InvariantEngine, TheOrderCostsGenerationWhatWasMeasured) {
  struct Measured {
    const char* model;
    std::int64_t sequences;
    double fastest_s, fixed_s;
  };
  for (const Measured& run : {Measured{"qwen2.5-1.5b", 256, 3.599, 3.916},
                              {"qwen2.5-1.5b", 64, 1.508, 1.683},
                              {"qwen2.5-7b", 256, 11.424, 12.078},
                              {"qwen2.5-7b", 64, 4.302, 4.483}}) {
    const double measured = run.fixed_s / run.fastest_s;
    const double priced = generation_seconds(kInvariant, run.model, run.sequences) /
                          generation_seconds("tessera", run.model, run.sequences);
    EXPECT_NEAR(priced / measured, 1, 0.03) << run.model << " " << run.sequences;
  }
}

// The actor scores samples in their order; nothing else that trains changes.
TEST(InvariantEngine, OnlyGenerationAndTheActorsScoresTakeLonger) {
  const auto priced = [](const std::string& engine, Role role) {
    PlanRequest request = request_by(engine);
    Candidate candidate;
    candidate.role = role;
    candidate.gpus = candidate.tp = 2;
    candidate.tokens = 16384;
    return CostEvaluator(request).seconds(candidate);
  };
  const PhaseSeconds fixed = priced(kInvariant, Role::actor), fast = priced("tessera", Role::actor);
  EXPECT_GT(fixed[Phase::old_log_prob], 1.05 * fast[Phase::old_log_prob]);
  EXPECT_EQ(fixed[Phase::update_actor], fast[Phase::update_actor]);
  EXPECT_EQ(priced(kInvariant, Role::reference), priced("tessera", Role::reference));
}

// Oracle: one search for each degree, which the settings name for both roles.
TEST(InvariantEngine, TheBestPlanIsTheBestOfAllEqualDegrees) {
  PlanRequest request = request_by(kInvariant);
  const Plan whole = planned(request);
  EXPECT_EQ(whole.engine, kInvariant);
  EXPECT_EQ(whole.find(Role::actor)->layout.tp, whole.find(Role::rollout)->layout.tp);
  EXPECT_TRUE(outside_capabilities(whole).empty());
  double best = std::numeric_limits<double>::infinity();
  for (const std::string tp : {"1", "2", "4"}) {
    request.fixed = settings({"actor.tp=" + tp, "rollout.tp=" + tp});
    Problems problems;
    const auto outcome = make_plan(request, problems);
    if (!outcome || !std::holds_alternative<Plan>(*outcome)) continue;
    best = std::min(best, std::get<Plan>(*outcome).prediction.step_s.value);
  }
  EXPECT_NEAR(whole.prediction.step_s.value, best, 1e-9 * best);
  request.fixed = {};
  request.engine = "tessera";
  EXPECT_LT(planned(request).prediction.step_s, whole.prediction.step_s);
}

TEST(InvariantEngine, WhatARunWouldRefuseIsNotPlanned) {
  PlanRequest request = request_by(kInvariant);
  request.fixed = settings({"actor.tp=2", "rollout.tp=1"});
  Problems problems;
  EXPECT_FALSE(make_plan(request, problems));
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(to_string(problems[0]), AllOf(HasSubstr("rollout.tp"), HasSubstr("sums over other")));

  request.fixed = settings({"actor.cp=2"});
  EXPECT_FALSE(refused(request).reasons.empty());

  request = request_by(kInvariant, "qwen3-30b-a3b");
  problems.clear();
  EXPECT_FALSE(make_plan(request, problems));
  EXPECT_THAT(to_string(problems.at(0)), HasSubstr("cannot run this architecture"));

  request = request_by("tessera");
  request.fixed = settings({"placement=colocated", "actor.tp=2", "rollout.tp=1"});
  Plan unequal = planned(request);
  unequal.engine = kInvariant;
  const Problems found = outside_capabilities(unequal);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].place, "/roles/1/layout/tp");
}

TEST(InvariantEngine, AnswersOnlyThoseWhoAskForIt) {
  for (const Engine* engine : answering(engine_named(kAnyEngine), {Role::actor, Role::rollout})) {
    EXPECT_FALSE(engine->fixed_order) << engine->name;
  }
}

}  // namespace
}  // namespace tessera
