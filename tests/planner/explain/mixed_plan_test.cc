// Plans on clusters with two GPU types: where the roles go, what the plan says, what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "cost_models/fit/derived_calibration.h"
#include "cost_models/spec/node_groups.h"
#include "cost_models/spec/spec_document.h"
#include "planner/engines/read_plan.h"
#include "planner/explain/infeasible.h"
#include "planner/explain/limits.h"
#include "planner/explain/planner.h"
#include "planner/explain/report.h"
#include "planner/explain/type_reasons.h"
#include "planner/explain/why_not.h"
#include "planner/plan/certified.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_json.h"
#include "planner/pricing/memory_limit.h"
#include "planner/request/objective.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"

namespace tessera {
namespace {

constexpr char kH800[] = "H800-SXM-80GB", kH20[] = "H20-96GB";

PlanRequest request(const std::string& model, const std::string& cluster,
                    const std::vector<std::string>& fixed = {}) {
  Problems problems;
  PlanRequest result;
  result.models["actor"] = {read_model_spec(model, problems).value(), model, ""};
  result.cluster = read_cluster_spec(cluster, problems).value();
  result.workload = read_workload("grpo-7b-1k", problems).value();
  result.calibration = calibration_for_cluster(result.cluster, problems).value();
  result.fixed = parse_settings(fixed, problems);
  result.created = "2026-01-01T00:00:00Z";
  EXPECT_TRUE(problems.empty()) << to_string(problems[0]);
  return result;
}

Plan plan_of(const PlanRequest& asked) {
  Problems problems;
  auto outcome = make_plan(asked, problems);
  EXPECT_TRUE(outcome.has_value()) << (problems.empty() ? "" : to_string(problems[0]));
  return std::get<Plan>(*std::move(outcome));
}

// verl's trainers: all on one pool, or the rollout on its own, one step off policy.
PlanRequest of_verl(const std::vector<std::string>& fixed = {}) {
  PlanRequest asked = request("qwen2-7b", "h800-h20-64", fixed);
  asked.engine = "verl";
  asked.one_step_off = true;
  return asked;
}

const Plan& best_on_h800_and_h20() {
  static const Plan plan = plan_of(of_verl());
  return plan;
}

TEST(MixedPlan, TheH800TrainAndTheH20RollOut) {
  const Plan& plan = best_on_h800_and_h20();
  std::printf("%s%s", describe(plan).c_str(),
              describe_type_reasons(plan, of_verl().calibration).c_str());
  EXPECT_EQ(plan.find(Role::actor)->gpu_types, std::vector<std::string>{kH800});
  EXPECT_EQ(plan.find(Role::rollout)->gpu_types, std::vector<std::string>{kH20});
  for (const int rank : plan.find(Role::actor)->ranks) EXPECT_LT(rank, 32);
  for (const int rank : plan.find(Role::rollout)->ranks) EXPECT_GE(rank, 32);
}

// As it was planned before types were told apart, and as either half alone would.
TEST(MixedPlan, BothTypesTogetherBeatTheWeakerOfEachAndEitherAlone) {
  const double best = best_on_h800_and_h20().prediction.step_s;
  PlanRequest asked = of_verl();
  PlanRequest weakest = asked;
  weakest.cluster = seen_from(asked.cluster, 0);
  weakest.calibration.views.clear();
  EXPECT_LT(best, plan_of(weakest).prediction.step_s);
  for (const char* type : {kH800, kH20}) {
    Problems problems;
    asked.fixed = parse_settings(std::vector<std::string>{"actor.gpu=" + std::string(type),
                                                          "rollout.gpu=" + std::string(type)},
                                 problems);
    EXPECT_LE(best, plan_of(asked).prediction.step_s) << type;
  }
}

TEST(MixedPlan, AFixedTypeIsKept) {
  const Plan swapped = plan_of(of_verl({"actor.gpu=H20-96GB", "rollout.gpu=H800-SXM-80GB"}));
  EXPECT_EQ(swapped.find(Role::actor)->gpu_types, std::vector<std::string>{kH20});
  EXPECT_EQ(swapped.find(Role::rollout)->gpu_types, std::vector<std::string>{kH800});
  EXPECT_GT(swapped.prediction.step_s, best_on_h800_and_h20().prediction.step_s);
  const Plan spanning = plan_of(of_verl({"actor.gpu=H800-SXM-80GB+H20-96GB"}));
  EXPECT_EQ(spanning.find(Role::actor)->gpu_types, (std::vector<std::string>{kH800, kH20}));
  EXPECT_NE(describe_type_reasons(spanning, of_verl().calibration).find("note: actor"),
            std::string::npos);
}

TEST(MixedPlan, AnUnknownTypeIsRefusedWithASuggestion) {
  Problems problems;
  EXPECT_FALSE(make_plan(of_verl({"actor.gpu=H20-96B"}), problems));
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].place, "actor.gpu");
  EXPECT_NE(problems[0].hint.find(kH20), std::string::npos) << problems[0].hint;
}

TEST(MixedPlan, TwoTypesForRolesOfOnePoolAreToldApart) {
  Problems problems;
  const auto outcome =
      make_plan(request("qwen2-7b", "h800-h20-64",
                        {"placement=colocated", "rollout.gpu=H20-96GB", "actor.gpu=H800-SXM-80GB"}),
                problems);
  ASSERT_TRUE(outcome);
  const Infeasible& none = std::get<Infeasible>(*outcome);
  ASSERT_EQ(none.reasons.size(), 1U);
  for (const char* part :
       {"actor.gpu=H800-SXM-80GB", "rollout.gpu=H20-96GB", "'colocated'", "in one pool"}) {
    EXPECT_NE(none.reasons[0].find(part), std::string::npos) << none.reasons[0];
  }
  EXPECT_EQ(none.nearest_fix.rfind("leave out ", 0), 0U) << none.nearest_fix;
}

TEST(MixedPlan, TheFileKeepsTheTypesAndIsRefusedWithOthers) {
  const Plan& plan = best_on_h800_and_h20();
  const std::string text = to_json(plan);
  Problems problems;
  const auto read = parse_plan(text, "plan.json", problems);
  ASSERT_TRUE(read) << to_string(problems.at(0));
  EXPECT_EQ(*read, plan);
  EXPECT_EQ(to_json(*read), text);
  EXPECT_EQ(certified(*read), Certified::yes);
  Plan wrong = plan;
  wrong.roles[0].gpu_types = {kH20};
  validate(wrong, "plan.json", problems);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].place, "/roles/0/gpu_types");
  problems.clear();
  wrong = plan;
  wrong.cluster.device.memory.value -= 1 << 30;  // no more the weakest of the types
  EXPECT_FALSE(parse_plan(to_json(wrong), "plan.json", problems));
  ASSERT_FALSE(problems.empty());
  EXPECT_NE(problems[0].place.find("node_types"), std::string::npos) << problems[0].place;
}

TEST(MixedPlan, TheCertificateNamesTheBestPlanOnOtherTypes) {
  const Plan& plan = best_on_h800_and_h20();
  const auto& others = plan.certificate.runner_up;
  const auto other = std::find_if(others.begin(), others.end(), [](const RunnerUp& each) {
    return each.placement.find("other GPU types") != std::string::npos;
  });
  ASSERT_NE(other, others.end());
  EXPECT_GE(other->step_s, plan.prediction.step_s);
  // What it says fixes that very plan.
  PlanRequest asked = of_verl(other->settings);
  EXPECT_NEAR(plan_of(asked).prediction.step_s, other->step_s, 1e-9 * other->step_s);
}

TEST(MixedPlan, WhyNotAnswersForTypes) {
  const Plan& plan = best_on_h800_and_h20();
  PlanRequest asked = request_of(plan, of_verl().calibration);
  Problems problems;
  const auto answer = why_not(plan, asked, {"rollout.gpu=H800-SXM-80GB"}, problems);
  ASSERT_TRUE(answer) << to_string(problems.at(0));
  EXPECT_GT(answer->extra_s, 0);
}

TEST(MixedPlan, ReasonsSayWhatTheSameLayoutTakesElsewhere) {
  const Plan& plan = best_on_h800_and_h20();
  const auto reasons = on_other_types(plan, of_verl().calibration);
  const auto of = [&](Role role) {
    return *std::find_if(reasons.begin(), reasons.end(),
                         [&](const OnOtherType& each) { return each.role == role; });
  };
  EXPECT_EQ(of(Role::actor).other, kH20);
  // A seventh of the products' rate, and a fifth more of the memory's for the kernels between them.
  EXPECT_GT(of(Role::actor).other_s, 2.5 * of(Role::actor).seconds);
  EXPECT_EQ(of(Role::rollout).other, kH800);
}

TEST(MixedPlan, ARefusalForMemoryNamesTheType) {
  Problems problems;
  PlanRequest asked = request("qwen2.5-72b", "h800-h20-64");
  for (NodeGroup& group : asked.cluster.groups) group.nodes = 1;
  asked.cluster.groups[0].device.memory = from_gib(4);
  asked.cluster.groups[1].device.memory = from_gib(6);
  set_to_weakest(asked.cluster, {0, 1});
  const auto outcome = make_plan(asked, problems);
  ASSERT_TRUE(outcome);
  const Infeasible& none = std::get<Infeasible>(*outcome);
  ASSERT_FALSE(none.shortages.empty());
  for (const MemoryShortage& shortage : none.shortages) EXPECT_FALSE(shortage.gpu.empty());
  EXPECT_NE(none.reasons[0].find(none.shortages[0].gpu), std::string::npos) << none.reasons[0];
}

// The dear type is bought only where it pays: by cost the plan takes fewer H800 seconds.
TEST(MixedPlan, CostCountsEveryTypeAtItsPrice) {
  PlanRequest asked = of_verl();
  asked.objective = Objective::cost;
  const Plan cheapest = plan_of(asked);
  const auto dollars = [&](const Plan& plan) {
    double price = 0;
    std::set<int> ranks;
    for (const RolePlan& role : plan.roles) ranks.insert(role.ranks.begin(), role.ranks.end());
    for (const int rank : ranks) {
      price += plan.cluster.groups[static_cast<std::size_t>(group_of(plan.cluster, rank))]
                   .price_per_gpu_hour;
    }
    return price * plan.prediction.step_s / 3600;
  };
  EXPECT_LE(dollars(cheapest), dollars(best_on_h800_and_h20()));
  EXPECT_NEAR(cheapest.certificate.value * asked.cluster.price_per_gpu_hour / 3600,
              dollars(cheapest), 1e-9);
  asked.cluster.groups[0].price_per_gpu_hour = 100;  // H800: no step is worth it
  set_to_weakest(asked.cluster, {0, 1});
  const Plan without = plan_of(asked);
  for (const RolePlan& role : without.roles) {
    EXPECT_EQ(role.gpu_types, std::vector<std::string>{kH20});
  }
}

TEST(NodeGroups, ViewsAreThoseOfTheRanks) {
  Problems problems;
  const ClusterSpec cluster = read_cluster_spec("h800-h20-64", problems).value();
  EXPECT_EQ(type_name(cluster, view_of(cluster, std::vector<int>{0, 31})), kH800);
  EXPECT_EQ(type_name(cluster, view_of(cluster, std::vector<int>{32, 63})), kH20);
  EXPECT_EQ(type_name(cluster, view_of(cluster, std::vector<int>{24, 39})),
            "H800-SXM-80GB+H20-96GB");
  const ClusterSpec all = seen_from(cluster, 0);
  EXPECT_EQ(all.device.peak_bf16, cluster.groups[1].device.peak_bf16);
  EXPECT_EQ(all.device.hbm, cluster.groups[0].device.hbm);
  EXPECT_EQ(all.device.memory, from_gib(80));
  EXPECT_EQ(all.intra_per_gpu, gb_per_s(200));
  EXPECT_EQ(seen_from(cluster, 2).device, cluster.groups[1].device);
  const ClusterSpec one = read_cluster_spec("h800-64", problems).value();
  EXPECT_EQ(seen_from(one, 0), one);
  EXPECT_EQ(pool_views(one).size(), 1U);
}

TEST(MixedPlan, ProgramsReadTheReasonsForItsTypes) {
  const Plan& plan = best_on_h800_and_h20();
  const Calibration calibration = of_verl().calibration;
  const auto reasons = on_other_types(plan, calibration);
  ASSERT_GE(reasons.size(), 2U);
  const std::string json = explain_json(plan, calibration, {}, reasons);
  Problems problems;
  const auto read = parse_json(json, "explain", problems);
  ASSERT_TRUE(read) << to_string(problems.at(0));
  const Node* types = read->root.find("gpu_types");
  ASSERT_NE(types, nullptr);
  ASSERT_EQ(types->items.size(), reasons.size());
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    const Node& one = types->items[i];
    EXPECT_EQ(one.find("role")->text, name_of(reasons[i].role));
    const bool generates = reasons[i].role == Role::rollout;
    EXPECT_EQ(one.find("gpu")->text, generates ? kH20 : kH800);
    EXPECT_EQ(one.find("other")->text, generates ? kH800 : kH20);
    EXPECT_NEAR(one.find("seconds")->number, reasons[i].seconds, 1e-6 * reasons[i].seconds);
    EXPECT_NEAR(one.find("other_s")->number, reasons[i].other_s, 1e-6 * reasons[i].other_s);
  }
}

TEST(MixedPlan, TheMemoryOfARankIsThatOfItsType) {
  const PlanRequest asked = of_verl();
  Plan plan;
  plan.engine = asked.engine;
  plan.cluster = asked.cluster;
  const Bytes h800 = usable_memory_of_rank(plan, asked.calibration, 0);
  const Bytes h20 = usable_memory_of_rank(plan, asked.calibration, 63);
  EXPECT_EQ(h800, usable_memory(asked));
  EXPECT_NEAR(h20 / h800, 95.0 / 80, 0.02);  // what lies beside the tensors is equal
}

}  // namespace
}  // namespace tessera
