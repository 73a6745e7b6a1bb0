// The rank map that a plan carries for its rollout, and what it saves.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "cost_models/collective.h"
#include "cost_models/layout/rank_assignment.h"
#include "planner/engines/read_plan.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_json.h"
#include "planner/pricing/role/reshard.h"
#include "planner/request/candidate.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"
#include "tests/planner/sample_requests.h"

namespace tessera {
namespace {

Plan planned(PlanRequest request, std::vector<std::string> words) {
  // Equal stages of whole replicas: what the closed forms count exactly.
  words.insert(words.end(), {"placement=colocated", "actor.vpp=1", "actor.head_layers=0"});
  const bool sharded = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word.starts_with("actor.dp_shard=");
  });
  if (!sharded) words.emplace_back("actor.dp_shard=1");
  Problems problems;
  request.fixed = parse_settings(words, problems);
  const auto outcome = make_plan(request, problems);
  EXPECT_TRUE(problems.empty() && outcome) << (problems.empty() ? "" : problems[0].found);
  return std::get<Plan>(*outcome);
}

PlanRequest request_on(int nodes, int per_node = 8) {
  Workload workload = workload_of("grpo", KlPlace::loss, false);
  workload.prompts_per_step = 96;
  workload.samples_per_prompt = 8;
  workload.prompt_tokens = 512;
  workload.response_tokens = {512, 0.5, 1024};
  return request_of(llama_8b(), workload, cluster_of(per_node, nodes, 141));
}

RolePlan& rollout_of(Plan& plan) {
  return *std::find_if(plan.roles.begin(), plan.roles.end(),
                       [](const RolePlan& role) { return role.role == Role::rollout; });
}

/// The same plan with its rollout in contiguous order.
Plan contiguous(Plan plan) {
  RolePlan& rollout = rollout_of(plan);
  std::sort(rollout.ranks.begin(), rollout.ranks.end());
  rollout.rank_order = RankOrder::contiguous;
  return plan;
}

BusiestBytes price_of(const Plan& plan, const PlanRequest& request) {
  CostEvaluator costs(request);
  return costs.busiest_bytes(candidate_of(plan, *plan.find(Role::actor)),
                             candidate_of(plan, *plan.find(Role::rollout)));
}

double seconds(const ReshardPlan& reshard, const PlanRequest& request) {
  return reshard_seconds(reshard.bytes_received, {}, 1, request.cluster, request.calibration);
}

TEST(RankMapChoice, FinerSlicesNeedNoBytesWhereTheirHalvesLie) {
  const PlanRequest request = request_on(1);
  Plan plan = planned(request, {"actor.tp=2", "actor.pp=1", "rollout.tp=4"});
  EXPECT_EQ(rollout_of(plan).rank_order, RankOrder::list);
  EXPECT_EQ(plan.reshard[0].bytes_received, 0);
  EXPECT_EQ(plan.prediction.phases_s.at(Phase::reshard), 0);
  const ReshardPlan before = reshard_totals_of(contiguous(plan), plan.reshard[0]);
  // A quarter of 8.03e9 parameters in 16 bit, less what every rank has: norms.
  EXPECT_NEAR(static_cast<double>(before.bytes_received.value), 8.03e9 * 2 / 4, 0.02e9);
  EXPECT_GT(seconds(before, request), 8e-3);
}

TEST(RankMapChoice, ShardsOfFsdpLieWithinTheSlicesThatTheirRanksGenerateWith) {
  const PlanRequest request = request_on(1);
  Plan plan = planned(request, {"actor.tp=1", "actor.dp_shard=8", "actor.zero=3", "rollout.tp=2"});
  ASSERT_EQ(rollout_of(plan).rank_order, RankOrder::list);
  const ReshardPlan before = reshard_totals_of(contiguous(plan), plan.reshard[0]);
  const ReshardPlan after = reshard_totals_of(plan, plan.reshard[0]);
  EXPECT_EQ(after.bytes_received.value, plan.reshard[0].bytes_received);
  // Half of the model is wanted; an eighth of it is held, by every other rank only in the old
  // order.
  const double whole = 2.0 * 8.03e9;
  EXPECT_NEAR(static_cast<double>(before.bytes_received.value) / whole, 1.0 / 2, 0.005);
  EXPECT_NEAR(static_cast<double>(after.bytes_received.value) / whole, 1.0 / 2 - 1.0 / 8, 0.005);
  EXPECT_LT(seconds(after, request), 0.76 * seconds(before, request));
  // The search knows it.
  EXPECT_NEAR(price_of(plan, request).received / after.bytes_received, 1, 0.01);
}

// Every stage's holder sends its part to all others; the search's price waits for the busiest.
TEST(RankMapChoice, APriceWaitsForTheBusiestSender) {
  const PlanRequest request = request_on(1);
  for (const auto& layouts :
       std::vector<std::vector<std::string>>{{"actor.tp=1", "actor.pp=8", "rollout.tp=1"},
                                             {"actor.tp=1", "actor.pp=4", "rollout.tp=2"},
                                             {"actor.tp=2", "actor.pp=4", "rollout.tp=2"},
                                             {"actor.tp=4", "actor.pp=2", "rollout.tp=4"},
                                             {"actor.tp=4", "actor.pp=2", "rollout.tp=1"},
                                             {"actor.tp=8", "actor.pp=1", "rollout.tp=2"}}) {
    const Plan plan = planned(request, layouts);
    const ReshardPlan exact = reshard_totals_of(plan, plan.reshard[0]);
    const double sent = static_cast<double>(exact.bytes_sent.value);
    EXPECT_NEAR(static_cast<double>(price_of(plan, request).sent.value) / sent, 1, 0.03)
        << layouts[0] << " " << layouts[1] << " " << layouts[2];
    EXPECT_GE(
        plan.prediction.phases_s.at(Phase::reshard),
        0.97 * arrival_seconds({}, 0, {Traffic{sent}, {}}, request.cluster, request.calibration));
  }
}

TEST(RankMapChoice, UnevenStagesAndPartsThatDoNotDivideMoveLess) {
  const PlanRequest request = request_on(1, 6);
  Plan plan = planned(request, {"actor.tp=1", "actor.pp=3", "actor.dp=2", "rollout.tp=2"});
  ASSERT_EQ(rollout_of(plan).rank_order, RankOrder::contiguous) << "no order is better here";
  plan = planned(request, {"actor.tp=2", "actor.pp=3", "actor.dp=1", "rollout.tp=6"});
  ASSERT_EQ(rollout_of(plan).rank_order, RankOrder::list);
  const ReshardPlan before = reshard_totals_of(contiguous(plan), plan.reshard[0]);
  const ReshardPlan after = reshard_totals_of(plan, plan.reshard[0]);
  EXPECT_LT(after.total_received.value, before.total_received.value);
  EXPECT_LE(after.bytes_received.value, before.bytes_received.value);
}

TEST(RankMapChoice, ThePriceIsThatOfTheMapInThePlan) {
  for (const int nodes : {1, 2, 3}) {
    const PlanRequest request = request_on(nodes);
    CostEvaluator costs(request);
    for (const auto& [tp, pp] : {std::pair{2, 1}, {1, 2}, {2, 2}, {1, 4}, {4, 2}, {1, 8}}) {
      const int gpus = 8 * nodes;
      const Plan plan =
          planned(request, {"actor.gpus=" + std::to_string(gpus), "actor.tp=" + std::to_string(tp),
                            "actor.pp=" + std::to_string(pp), "rollout.tp=8"});
      const Candidate actor{{.tp = tp, .pp = pp, .dp = gpus / tp / pp}, Role::actor, gpus};
      const Candidate rollout{{.tp = 8, .dp = nodes}, Role::rollout, gpus};
      EXPECT_EQ(costs.reshard_bytes(actor, rollout), plan.reshard[0].bytes_received)
          << nodes << " nodes, tp" << tp << " pp" << pp;
      const ReshardPlan before = reshard_totals_of(contiguous(plan), plan.reshard[0]);
      EXPECT_LE(plan.reshard[0].bytes_received, before.bytes_received.value);
      EXPECT_LE(plan.reshard[0].total_received_bytes, before.total_received.value);
    }
  }
}

TEST(RankMapChoice, ClosedFormsAreKeptWhereGroupsDivide) {
  Plan plan = planned(request_on(1), {"actor.tp=8", "actor.pp=1", "rollout.tp=2"});
  EXPECT_EQ(rollout_of(plan).rank_order, RankOrder::strided);
}

TEST(RankMapChoice, PlansOfEnginesWithTheirOwnOrderKeepIt) {
  PlanRequest request = request_on(1);
  request.engine = "verl-megatron";
  Plan plan = planned(request, {"actor.tp=2", "actor.pp=1", "rollout.tp=4"});
  EXPECT_NE(rollout_of(plan).rank_order, RankOrder::list);
}

TEST(RankMapChoice, ListsAreReadBackAndDeriveTheSameReshard) {
  const Plan plan = planned(request_on(2), {"actor.tp=2", "actor.pp=2", "rollout.tp=8"});
  Problems problems;
  validate(plan, "plan.json", problems);
  EXPECT_TRUE(problems.empty()) << problems[0].found;
  const auto again = parse_plan(to_json(plan), "plan.json", problems);
  ASSERT_TRUE(again && problems.empty());
  EXPECT_EQ(*again, plan);
  check_reshard_digests(*again, "plan.json", problems);
  EXPECT_TRUE(problems.empty());
}

}  // namespace
}  // namespace tessera
