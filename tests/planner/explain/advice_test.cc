// Advice and what it rests on, against the search itself.
#include "planner/explain/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
#include "planner/engines/engine.h"
#include "planner/explain/planner.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"
#include "tests/planner/explain/best_plan.h"
#include "tests/planner/planned.h"

namespace tessera {
namespace {

using testing::HasSubstr;

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
  EXPECT_LT(free, 0.9 * step_with({"actor.cp=1"}));
}

}  // namespace
}  // namespace tessera
