// Variations, why-not and advice against the search itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/fit/derived_calibration.h"
#include "planner/engines/engine.h"
#include "planner/explain/advice.h"
#include "planner/explain/infeasible.h"
#include "planner/explain/planner.h"
#include "planner/explain/variations.h"
#include "planner/explain/why_not.h"
#include "planner/plan/certified.h"
#include "planner/request/objective.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"
#include "tests/planner/planned.h"

namespace tessera {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

const Plan& best_plan() {
  static const Plan plan = [] {
    Problems problems;
    return std::get<Plan>(*make_plan(request_for("h200-8"), problems));
  }();
  return plan;
}

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

/// Two plans that differ in one setting of the actor's, both the search's own.
Plan plan_with(const std::vector<std::string>& words) {
  Problems problems;
  PlanRequest request = request_for("h200-8");
  request.fixed = parse_settings(words, problems);
  const auto outcome = make_plan(request, problems);
  EXPECT_TRUE(outcome && std::holds_alternative<Plan>(*outcome));
  const Plan* plan = outcome ? std::get_if<Plan>(&*outcome) : nullptr;
  return plan == nullptr ? best_plan() : *plan;
}

TEST(Advice, EveryRungIsThePlanWithThatChangeAlone) {
  const std::vector<std::string> fixed = {"actor.tp=2",         "actor.pp=1",
                                          "actor.dp=4",         "actor.zero=1",
                                          "actor.offload=none", "actor.recompute=none",
                                          "actor.tokens=8192",  "rollout.tp=4",
                                          "rollout.dp=2",       "rollout.max_sequences=1024"};
  const Plan plan = plan_with(fixed);
  const PlanRequest request = request_of(plan, request_for("h200-8").calibration);
  const Advice advice = advice_for(plan, request);
  ASSERT_GE(advice.ladder.size(), 5U);
  // More replicas of half the sequences each: the cache stays, weights double.
  const Rung& wider = advice.ladder[0];
  ASSERT_TRUE(wider.possible) << wider.why;
  EXPECT_THAT(wider.words[0], "rollout.tp=2");
  const MemoryUse served = plan.find(Role::rollout)->memory.at(Phase::gen);
  EXPECT_LT(wider.role_saves_bytes, -served.weights * 9 / 10);
  EXPECT_GT(wider.role_saves_bytes, -served.weights * 11 / 10 - served.kv_cache / 20);
  std::map<std::string, const Rung*> rungs;
  for (const Rung& rung : advice.ladder) {
    EXPECT_EQ(rung.possible, rung.why.empty()) << rung.what;
    rungs[rung.words[0]] = &rung;
  }
  EXPECT_FALSE(advice.hints.empty());
  // Recomputation and offload cost time and save the actor's memory, whatever other roles do.
  for (const char* word : {"actor.recompute=full", "actor.offload=optimizer"}) {
    ASSERT_TRUE(rungs.contains(word));
    const Rung& rung = *rungs.at(word);
    ASSERT_TRUE(rung.possible) << rung.why;
    EXPECT_GT(rung.step_s, advice.step_s) << word;
    EXPECT_LE(rung.peak_bytes, advice.peak_bytes) << word;
    EXPECT_GT(rung.role_saves_bytes, 0) << word;
  }
  // Half the slots: half the cache, the weights as they were.
  const MemoryUse before = plan.find(Role::rollout)->memory.at(Phase::gen);
  const auto half = std::find_if(advice.ladder.begin(), advice.ladder.end(), [](const Rung& rung) {
    return rung.what == "half the sequences decoded at once";
  });
  ASSERT_NE(half, advice.ladder.end());
  ASSERT_TRUE(half->possible);
  EXPECT_GE(half->role_saves_bytes, before.kv_cache * 45 / 100);
  EXPECT_LE(half->role_saves_bytes, before.kv_cache * 55 / 100 + before.workspace);
  // The same change asked of the search, with everything else of the actor fixed.
  std::vector<std::string> recomputing = fixed;
  recomputing[5] = "actor.recompute=full";
  EXPECT_NEAR(rungs.at("actor.recompute=full")->step_s, plan_with(recomputing).prediction.step_s,
              0.02 * advice.step_s);
}

/// A source is a publication, a file of a repository, or a text as configs/rules names it.
TEST(Advice, NamesSourcesThatTheRulesOrAPublicationName) {
  std::ifstream file(std::string(TESSERA_SOURCE_DIR) + "/configs/rules/published-practice.json");
  const std::string rules{std::istreambuf_iterator<char>(file), {}};
  for (const char* cluster : {"h200-8", "h200-64"}) {
    const Plan plan = cluster == std::string("h200-8") ? best_plan() : [&] {
      Problems problems;
      return std::get<Plan>(*make_plan(request_for(cluster), problems));
    }();
    const Advice advice = advice_for(plan, request_of(plan, request_for(cluster).calibration));
    ASSERT_FALSE(advice.hints.empty());
    for (const Hint& hint : advice.hints) {
      EXPECT_TRUE(rules.find("\"" + hint.source + "\"") != std::string::npos ||
                  hint.source.find("arXiv:") != std::string::npos ||
                  hint.source.find("docs/") != std::string::npos)
          << hint.source;
    }
  }
}

/// Experts are cut by ep, too: the rollout's share of a GPU is what its memory says.
TEST(Advice, TheRolloutsShareOfAGpuIsThatOfItsOwnWeights) {
  Plan plan = best_plan();
  RolePlan& rollout = plan.roles[1];
  ASSERT_EQ(rollout.role, Role::rollout);
  rollout.memory.at(Phase::gen).weights = plan.cluster.device.memory / 4;
  const Advice advice = advice_for(plan, request_of(plan, request_for("h200-8").calibration));
  EXPECT_THAT(advice.hints.back().verdict, HasSubstr("25.0 % of a GPU"));
}

TEST(Prediction, CommunicationOfPoolsThatWorkAtTheSameTimeIsThatOfOne) {
  Problems problems;
  PlanRequest request = request_for("l40s-64");
  request.workload = *read_workload("ppo-7b-1k", problems);
  request.engine = "any";
  const std::vector<std::string> words = {"placement=actor+reference | critic | rollout"};
  request.fixed = parse_settings(words, problems);
  const Plan plan = std::get<Plan>(*make_plan(request, problems));
  request.traits = traits_of(plan.engine, request.choices);
  CostEvaluator costs(request);
  double sum = 0, most = 0;
  for (const RolePlan& role : plan.roles) {
    const RoleCost cost = costs.cost(candidate_of(plan, role));
    double own = 0;
    for (const double seconds : cost.communication) own += seconds;
    sum += own;
    most = std::max(most, own);
  }
  const double reshard = plan.prediction.phases_s.at(Phase::reshard);
  EXPECT_GE(plan.prediction.exposed_comm_s, (most + reshard) * (1 - 1e-9));
  EXPECT_LT(plan.prediction.exposed_comm_s, sum + reshard);
  EXPECT_LT(plan.prediction.exposed_comm_s, plan.prediction.step_s);
}

TEST(Advice, OnColocationAnswersWithThePlanThatColocates) {
  Problems problems;
  PlanRequest request = request_for("h200-64");
  request.engine = "any";
  const std::vector<std::string> words = {"placement=actor+reference | rollout"};
  request.fixed = parse_settings(words, problems);
  const Plan plan = std::get<Plan>(*make_plan(request, problems));
  const Advice advice = advice_for(plan, request_of(plan, request.calibration));
  EXPECT_EQ(advice.hints.front().advice, "16 to 64 GPUs: colocate all roles");
  EXPECT_THAT(advice.hints.front().verdict, testing::StartsWith("colocated takes"));
}

/// A mini-batch of two sequences: only parts of a sequence occupy the other GPUs.
TEST(ContextParallelism, IsTriedBelow2KiTokensWhereTheBatchHasNotASequenceForEveryReplica) {
  Problems problems;
  PlanRequest request = request_for("h200-8");
  request.engine = "verl";
  request.workload.prompts_per_step = 8;
  request.workload.samples_per_prompt = 1;
  request.workload.prompt_tokens = 3000;
  request.workload.response_tokens = {1000, 0, 1000};
  request.workload.mini_batches = 4;
  const auto step_with = [&](std::vector<std::string> words) {
    words.emplace_back("placement=colocated");
    request.fixed = parse_settings(words, problems);
    return std::get<Plan>(*make_plan(request, problems)).prediction.step_s;
  };
  const double free = step_with({});
  for (const char* degree : {"actor.cp=1", "actor.cp=2", "actor.cp=4"}) {
    EXPECT_LE(free, step_with({degree}) * (1 + 1e-9)) << degree;
  }
  EXPECT_LT(free, 0.8 * step_with({"actor.cp=1"}));
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
