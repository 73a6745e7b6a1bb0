// Variations and why-not against the search itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "planner/explain/advice.h"
#include "planner/explain/infeasible.h"
#include "planner/explain/planner.h"
#include "planner/explain/variations.h"
#include "planner/explain/why_not.h"
#include "planner/plan/certified.h"
#include "planner/request/objective.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"
#include "tests/planner/explain/best_plan.h"
#include "tests/planner/planned.h"

namespace tessera {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

TEST(Variations, AreEveryCombinationWithTheLastFastest) {
  Problems problems;
  const std::vector<std::string> words = {"rollout.tp=1,2", "actor.tp=4,8"};
  const auto variations = parse_variations(words, problems);
  const auto plans = plan_variations(request_for("h200-8"), variations, problems);
  ASSERT_TRUE(plans.has_value());
  ASSERT_THAT(*plans, SizeIs(4));
  EXPECT_THAT((*plans)[0].words, ElementsAre("rollout.tp=1", "actor.tp=4"));
  EXPECT_THAT((*plans)[1].words, ElementsAre("rollout.tp=1", "actor.tp=8"));
  EXPECT_THAT((*plans)[2].words, ElementsAre("rollout.tp=2", "actor.tp=4"));
  for (const VariedPlan& varied : *plans) {
    const Plan& plan = std::get<Plan>(varied.outcome);
    EXPECT_EQ("rollout.tp=" + std::to_string(plan.find(Role::rollout)->layout.tp), varied.words[0]);
    EXPECT_EQ("actor.tp=" + std::to_string(plan.find(Role::actor)->layout.tp), varied.words[1]);
    EXPECT_GE(plan.prediction.step_s, best_plan().prediction.step_s);
  }
}

TEST(Variations, OverEveryTpHoldTheOptimum) {
  Problems problems;
  const std::vector<std::string> words = {"rollout.tp=1,2,4,8"};
  const auto plans =
      plan_variations(request_for("h200-8"), parse_variations(words, problems), problems);
  double best = 1e30;
  for (const VariedPlan& varied : *plans) {
    if (const Plan* plan = std::get_if<Plan>(&varied.outcome)) {
      best = std::min(best, plan->prediction.step_s.value);
    }
  }
  EXPECT_DOUBLE_EQ(best, best_plan().prediction.step_s);
  EXPECT_THAT(describe(*plans), HasSubstr("+0.0 %"));
}

TEST(Variations, AreRankedByTheObjectiveAndNotByTheStep) {
  Problems problems;
  PlanRequest request = request_for("h200-8");
  request.models["actor"] = {*read_model_spec("qwen2.5-0.5b", problems), "qwen2.5-0.5b", ""};
  request.objective = Objective::cost;
  const std::vector<std::string> words = {"actor.gpus=1,8"};
  const auto plans = plan_variations(request, parse_variations(words, problems), problems);
  ASSERT_TRUE(plans);
  const auto gpu_seconds = [](const Plan& plan) {
    return plan.prediction.step_s * plan.world_size();
  };
  const Plan *cheapest = nullptr, *fastest = nullptr;
  for (const VariedPlan& varied : *plans) {
    const Plan* plan = std::get_if<Plan>(&varied.outcome);
    if (plan == nullptr) continue;
    if (cheapest == nullptr || gpu_seconds(*plan) < gpu_seconds(*cheapest)) cheapest = plan;
    if (fastest == nullptr || plan->prediction.step_s < fastest->prediction.step_s) fastest = plan;
  }
  ASSERT_NE(cheapest, nullptr);
  ASSERT_NE(cheapest, fastest);
  EXPECT_EQ(best_of(*plans), cheapest);
  char dearer[32];
  std::snprintf(dearer, sizeof dearer, "%+.1f %%",
                100 * (gpu_seconds(*fastest) / gpu_seconds(*cheapest) - 1));
  EXPECT_THAT(describe(*plans), HasSubstr(dearer));
}

TEST(Variations, SayWhyARowHasNoPlan) {
  Problems problems;
  const std::vector<std::string> words = {"actor.tokens=4096,1000000000"};
  PlanRequest request = request_for("h200-8");
  request.fixed = parse_settings(std::vector<std::string>{"actor.pp=1"}, problems);
  const auto plans = plan_variations(request, parse_variations(words, problems), problems);
  ASSERT_TRUE(plans.has_value());
  EXPECT_TRUE(std::holds_alternative<Plan>((*plans)[0].outcome));
  EXPECT_TRUE(std::holds_alternative<Infeasible>((*plans)[1].outcome));
  EXPECT_THAT(describe(*plans), HasSubstr("no plan: rank"));
  EXPECT_THAT(to_json(*plans), HasSubstr("\"feasible\": false"));
}

TEST(Variations, RefuseWordsThatContradict) {
  const auto refused = [](std::vector<std::string> words) {
    Problems problems;
    const auto variations = parse_variations(words, problems);
    if (problems.empty()) plan_variations(request_for("h200-8"), variations, problems);
    return problems.size();
  };
  EXPECT_EQ(refused({"rollout.tp"}), 1U);
  EXPECT_EQ(refused({"rollout.tp=1,,2"}), 1U);
  EXPECT_EQ(refused({"rollout.tp=1,1"}), 1U);
  EXPECT_EQ(refused({"rollout.tp=1", "rollout.tp=2"}), 1U);
  EXPECT_EQ(refused({"rolout.tp=1,2"}), 1U);
  EXPECT_EQ(refused({"actor.dp=1,2,3,4,5,6,7,8,9", "actor.pp=1,2,3,4,5,6,7,8,9",
                     "rollout.dp=1,2,3,4,5,6,7,8,9", "rollout.pp=1,2,3,4,5,6,7,8,9"}),
            1U);
}

TEST(WhyNot, ExtraSecondsAreThoseOfTheBestPlanWithTheChoiceAndAddUpByPhase) {
  Problems problems;
  const PlanRequest request = request_of(best_plan(), request_for("h200-8").calibration);
  const auto answer = why_not(best_plan(), request, {"rollout.tp=8"}, problems);
  ASSERT_TRUE(answer.has_value());
  PlanRequest fixed = request_for("h200-8");
  fixed.fixed = parse_settings(std::vector<std::string>{"rollout.tp=8"}, problems);
  const Plan other = std::get<Plan>(*make_plan(fixed, problems));
  EXPECT_DOUBLE_EQ(answer->extra_s, other.prediction.step_s - best_plan().prediction.step_s);
  EXPECT_GT(answer->extra_s, 0);
  Seconds sum;
  for (const auto& [phase, extra] : answer->phase_extra_s) sum += extra;
  EXPECT_NEAR(sum, answer->extra_s, 1e-6 * answer->extra_s);  // colocated: phases follow each other
  // The causes are named, and are all of it but for what is too little to be named.
  ASSERT_FALSE(answer->causes.empty());
  Seconds caused;
  for (const auto& [part, extra] : answer->causes) caused += extra;
  EXPECT_NEAR(caused, answer->extra_s, 0.04 * std::abs(answer->causes.front().second.value));
  EXPECT_THAT(describe(*answer, best_plan()),
              HasSubstr("  of it          " + std::string(name_of(answer->causes.front().first))));
  // At the margin, the one plan that much slower and the other that much faster are level.
  EXPECT_NEAR(best_plan().prediction.step_s * (1 + answer->margin),
              other.prediction.step_s * (1 - answer->margin), 1e-9);
  EXPECT_THAT(describe(*answer, best_plan()), HasSubstr("gen"));
}

TEST(WhyNot, NamesRankPhaseClassAndBytesOfWhatDoesNotFit) {
  Problems problems;
  const PlanRequest request = request_of(best_plan(), request_for("h200-8").calibration);
  const auto answer =
      why_not(best_plan(), request, {"actor.pp=1", "actor.tokens=1000000000"}, problems);
  ASSERT_TRUE(answer.has_value());
  const Infeasible& none = std::get<Infeasible>(answer->outcome);
  ASSERT_FALSE(none.shortages.empty());
  // Both of the actor's calls have that limit.
  EXPECT_THAT(none.shortages[0].phase, AnyOf(Phase::old_log_prob, Phase::update_actor));
  EXPECT_EQ(none.shortages[0].tensor_class, "activations");
  EXPECT_GT(none.shortages[0].missing(), 0);
  EXPECT_THAT(describe(*answer, best_plan()), HasSubstr("nearest fix: actor.tokens="));
  EXPECT_THAT(to_json(*answer), HasSubstr("\"class\": \"activations\""));
}

TEST(WhyNot, SaysSoWhereThePlanHasTheChoice) {
  Problems problems;
  const PlanRequest request = request_of(best_plan(), request_for("h200-8").calibration);
  const std::string word =
      "rollout.tp=" + std::to_string(best_plan().find(Role::rollout)->layout.tp);
  const auto answer = why_not(best_plan(), request, {word}, problems);
  EXPECT_DOUBLE_EQ(answer->extra_s, 0);
  EXPECT_THAT(describe(*answer, best_plan()), HasSubstr("the plan has it"));
}

TEST(WhyNot, RefusesUnknownWords) {
  Problems problems;
  const PlanRequest request = request_of(best_plan(), request_for("h200-8").calibration);
  EXPECT_FALSE(why_not(best_plan(), request, {"rollout.pt=8"}, problems).has_value());
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(problems[0].file, "--why-not");
}

Plan plan_by(Objective objective) {
  PlanRequest request = request_for("h200-8");
  request.engine = "any";
  request.objective = objective;
  Problems problems;
  return std::get<Plan>(*make_plan(request, problems));
}

TEST(WhyNot, OfAPlanWithFewestGpusAnswersByGpus) {
  const Plan plan = plan_by(Objective::fewest_gpus);
  ASSERT_EQ(plan.certificate.value, plan.world_size());
  const PlanRequest request = request_of(plan, request_for("h200-8").calibration);
  EXPECT_EQ(request.objective, Objective::fewest_gpus);
  Problems problems;
  const std::string words = "rollout.tp=" + std::to_string(2 * plan.world_size());
  const auto answer = why_not(plan, request, {words}, problems);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->gpus, 2 * plan.world_size());
  EXPECT_NEAR(answer->worse, 1.0, 1e-9);
  EXPECT_EQ(answer->margin, 1);
  const std::string text = describe(*answer, plan);
  EXPECT_THAT(text, HasSubstr("instead of " + std::to_string(plan.world_size())));
  EXPECT_THAT(text, testing::Not(HasSubstr("other constants")));
  EXPECT_THAT(describe(advice_for(plan, request)), testing::Not(HasSubstr("takes -")));
}

/// A search would have found what is better; a plan that none made says so, and so does one that
/// was changed since.
TEST(WhyNot, WhatIsBetterThanAPlanIsSaidToBeSoForTheRightReason) {
  const Calibration constants = request_for("h200-8").calibration;
  const auto told = [&](const Plan& plan) {
    Problems problems;
    const auto answer = why_not(plan, request_of(plan, constants), {"rollout.dp=8"}, problems);
    return answer && answer->worse < 0 ? describe(*answer, plan) : "";
  };
  Plan plan = best_plan();
  plan.prediction.step_s *= 3;
  EXPECT_THAT(told(plan), HasSubstr("): the plan is edited since its search\n"));
  plan.certificate.digest.clear();
  EXPECT_THAT(told(plan), HasSubstr("): the plan is not from a search\n"));
  plan.certificate.digest = certified_digest(plan);
  EXPECT_THAT(told(plan), HasSubstr("): the plan was made with other constants or settings\n"));
}

TEST(WhyNot, OfAPlanByCostOrThroughputAnswersByThose) {
  for (const Objective objective : {Objective::cost, Objective::tokens_per_gpu}) {
    const Plan plan = plan_by(objective);
    const PlanRequest request = request_of(plan, request_for("h200-8").calibration);
    Problems problems;
    for (const char* words : {"actor.gpus=8", "rollout.tp=8"}) {
      const auto answer = why_not(plan, request, {words}, problems);
      ASSERT_TRUE(answer);
      const Plan& other = std::get<Plan>(answer->outcome);
      EXPECT_GE(answer->worse, -plan.certificate.gap);
      EXPECT_NEAR(answer->worse,
                  other.prediction.step_s * other.world_size() /
                          (plan.prediction.step_s * plan.world_size()) -
                      1,
                  1e-9);
      EXPECT_THAT(describe(*answer, plan), testing::Not(HasSubstr("other constants")));
    }
  }
}

TEST(Certificate, StatesItsValueInTheUnitOfItsObjective) {
  const Plan quickest = plan_by(Objective::step_time);
  EXPECT_DOUBLE_EQ(quickest.certificate.value, quickest.prediction.step_s);
  const Plan dense = plan_by(Objective::tokens_per_gpu);
  EXPECT_DOUBLE_EQ(dense.certificate.value, dense.prediction.tokens_per_s_per_gpu);
  EXPECT_GE(dense.certificate.lower_bound, dense.certificate.value);
  EXPECT_GE(dense.certificate.value, quickest.prediction.tokens_per_s_per_gpu * (1 - 1e-9));
  const Plan cheapest = plan_by(Objective::cost);
  EXPECT_NEAR(cheapest.certificate.value, cheapest.prediction.step_s * cheapest.world_size(),
              1e-9 * cheapest.certificate.value);
}

}  // namespace
}  // namespace tessera
