// Re-planning against fresh planning.
#include <gtest/gtest.h>

#include "cost_models/fit/derived_calibration.h"
#include "planner/explain/infeasible.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "planner/request/objective.h"
#include "planner/request/request.h"
#include "planner/request/request_reader.h"
#include "tests/planner/sample_requests.h"

namespace tessera {
namespace {

PlanRequest ppo_request(const std::string& engine) {
  Workload workload = workload_of("ppo", KlPlace::reward, false);
  workload.prompts_per_step = 64;
  workload.samples_per_prompt = 2;
  workload.prompt_tokens = 1024;
  workload.response_tokens = {1024, 0.5, 2048};
  PlanRequest request = request_of(llama_8b(), workload, cluster_of(8, 2, 80));
  request.engine = engine;
  return request;
}

TEST(Replanning, GivesThePlanOfAFreshSearchWhateverWasAskedBefore) {
  const std::vector<std::vector<std::string>> asked = {
      {},
      {"critic.tp=4"},
      {"actor.tp=4", "rollout.tp=2"},
      {},
      {"rollout.dp=4"},
      {"actor.zero=1", "actor.pp=2"},
      {"actor.gpus=8", "critic.gpus=8"},
      {"reference.tokens=6144"},
      {"actor.pp=64"},
      {"placement=actor+reference|critic"},
      {"actor.tp=4"},
      {"actor.cp=2"},
      {"actor.cp=2", "actor.context=ulysses", "critic.cp=4"},
      {"critic.zero=2", "actor.dp_shard=8"},
      {"critic.vpp=2", "critic.offload=optimizer"},
      {"actor.cp=3"},
  };
  const PlanRequest request = ppo_request("tessera");
  Planner planner(request);
  int found = 0, refused = 0;
  for (const auto& words : asked) {
    Problems problems;
    PlanRequest fresh = request;
    fresh.fixed = parse_settings(words, problems);
    const auto again = planner.plan(fresh.fixed, Objective::step_time, problems);
    const auto once = make_plan(fresh, problems);
    ASSERT_TRUE(problems.empty());
    ASSERT_EQ(again->index(), once->index()) << words.size();
    if (std::holds_alternative<Infeasible>(*once)) {
      ++refused;
      continue;
    }
    ++found;
    Plan a = std::get<Plan>(*again), b = std::get<Plan>(*once);
    EXPECT_DOUBLE_EQ(a.prediction.step_s, b.prediction.step_s);
    ASSERT_EQ(a.certificate.runner_up.size(), b.certificate.runner_up.size());
    for (std::size_t i = 0; i < a.certificate.runner_up.size(); ++i) {
      EXPECT_DOUBLE_EQ(a.certificate.runner_up[i].step_s, b.certificate.runner_up[i].step_s);
    }
    a.certificate = b.certificate = {};  // counts differ: prices are kept
    EXPECT_EQ(a, b);
  }
  EXPECT_EQ(found, 14);
  EXPECT_EQ(refused, 2);
}

TEST(Replanning, OfTheWholeSpaceGivesThePlanOfAFreshSearch) {
  PlanRequest request = ppo_request("any");
  request.workload.prompts_per_step = 8;
  request.workload.prompt_tokens = 2048;
  request.cluster.nodes = 1;
  Planner planner(request);
  int found = 0;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{}, {"actor.dp_shard=8"}, {"actor.cp=2", "rollout.pp=1"}}) {
    Problems problems;
    PlanRequest fresh = request;
    fresh.fixed = parse_settings(words, problems);
    const auto again = planner.plan(fresh.fixed, Objective::step_time, problems);
    const auto once = make_plan(fresh, problems);
    ASSERT_EQ(again->index(), once->index()) << words.size();
    if (!std::holds_alternative<Plan>(*once)) continue;
    ++found;
    EXPECT_DOUBLE_EQ(std::get<Plan>(*again).prediction.step_s,
                     std::get<Plan>(*once).prediction.step_s);
  }
  EXPECT_EQ(found, 3);
}

// Weights that are cut once leave a rollout room for seven sequences: what its memory allows and
// its reshard takes, not their bounds, tells which layouts of the others can still win. 12.9
// million candidates were looked at by bounds alone.
TEST(Replanning, LooksAtFewCandidatesWhereMemoryLeavesARolloutFewSequences) {
  Problems problems;
  PlanRequest request = read_request({.model = "llama3.1-70b",
                                      .cluster = "meta-h100-24k",
                                      .workload = "grpo-7b-1k",
                                      .fixed = {"rollout.tp=2"}},
                                     problems);
  request.cluster.nodes = 128;
  request.calibration = *calibration_for_cluster(request.cluster, problems);
  const auto outcome = make_plan(request, problems);
  ASSERT_TRUE(problems.empty() && outcome && std::holds_alternative<Plan>(*outcome));
  const Plan& plan = std::get<Plan>(*outcome);
  EXPECT_EQ(plan.find(Role::rollout)->batching.max_sequences, 7);
  EXPECT_LT(plan.certificate.evaluated, 6'000'000);
}

}  // namespace
}  // namespace tessera
