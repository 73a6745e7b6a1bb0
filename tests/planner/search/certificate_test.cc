// What a certificate says of the plans that lost, against searches for them.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "planner/engines/read_plan.h"
#include "planner/explain/planner.h"
#include "planner/explain/report.h"
#include "planner/plan/plan_json.h"
#include "planner/request/describe.h"
#include "planner/request/objective.h"
#include "tests/planner/planned.h"

namespace tessera {
namespace {

TEST(Certificate, ListsTheBestOfEveryOtherPlacementAndItsMargin) {
  const Plan plan = planned(ppo_request(2));
  const Certificate& certificate = plan.certificate;
  EXPECT_EQ(certificate.gap, 0);
  EXPECT_EQ(certificate.lower_bound, certificate.value);
  EXPECT_GT(certificate.evaluated, 100);
  ASSERT_FALSE(certificate.runner_up.empty());
  double last = certificate.value;
  for (const RunnerUp& other : certificate.runner_up) {
    EXPECT_GE(other.step_s, last);
    last = other.step_s;
  }
  EXPECT_TRUE(std::any_of(certificate.runner_up.begin(), certificate.runner_up.end(),
                          [](const RunnerUp& other) {
                            return other.placement.find("another layout") != std::string::npos;
                          }));
  for (const RunnerUp& other : certificate.runner_up) EXPECT_GT(other.gpus, 0);
  EXPECT_GT(certificate.margin_deviations, 0);
  const double next = certificate.runner_up[0].step_s;
  EXPECT_NEAR(certificate.value * (1 + certificate.margin), next * (1 - certificate.margin),
              1e-9 * next);
}

// The best of a part of the space says of which, and explain repeats it.
TEST(Certificate, OfFixedSettingsNamesThem) {
  PlanRequest request = ppo_request(2);
  EXPECT_TRUE(planned(request).certificate.fixed.empty());
  Problems problems;
  const std::vector<std::string> words{"actor.tp=2", "rollout.tp=1"};
  request.fixed = parse_settings(words, problems);
  const Plan plan = planned(request);
  EXPECT_EQ(plan.certificate.fixed, words);
  const std::string text = describe_certificate(plan);
  EXPECT_NE(text.find("proven best of what is fixed"), std::string::npos) << text;
  EXPECT_NE(text.find("fixed: actor.tp=2 rollout.tp=1\n"), std::string::npos) << text;
  const auto read = parse_plan(to_json(plan), "plan.json", problems);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->certificate.fixed, words);
}

TEST(Certificate, SettingsOfARunnerUpFindItAgain) {
  const PlanRequest request = ppo_request(2);
  const Plan best = planned(request);
  Planner planner(request);
  int found = 0;
  for (const RunnerUp& other : best.certificate.runner_up) {
    Problems problems;
    const auto again =
        planner.plan(parse_settings(other.settings, problems), Objective::step_time, problems);
    ASSERT_TRUE(problems.empty()) << to_string(problems[0]);
    ASSERT_TRUE(std::holds_alternative<Plan>(*again)) << other.description;
    const Plan& plan = std::get<Plan>(*again);
    EXPECT_NEAR(plan.prediction.step_s, other.step_s, 1e-9 * other.step_s) << other.description;
    EXPECT_EQ(describe_layouts(plan), other.description);
    ++found;
  }
  EXPECT_GT(found, 3);
}

TEST(Certificate, NoLayoutsOfTwoRolesAreNearerThanTheOneItNames) {
  const PlanRequest request = ppo_request(1);
  const Plan best = planned(request);
  const auto named = std::find_if(
      best.certificate.runner_up.begin(), best.certificate.runner_up.end(),
      [](const RunnerUp& other) { return other.placement.ends_with(", another layout"); });
  ASSERT_NE(named, best.certificate.runner_up.end());
  // Every other tp of one role or of two, with the degrees that the plan chose for the others.
  std::vector<std::pair<int, int>> degrees;
  for (const int of_a : {1, 2, 4, 8}) {
    for (const int of_b : {1, 2, 4, 8}) degrees.emplace_back(of_a, of_b);
  }
  Planner planner(request);
  double nearest = std::numeric_limits<double>::infinity();
  for (std::size_t a = 0; a < best.roles.size(); ++a) {
    for (std::size_t b = a; b < best.roles.size(); ++b) {
      for (const auto& [of_a, of_b] : degrees) {
        if ((a == b && of_a != of_b) || of_a == best.roles[a].layout.tp ||
            of_b == best.roles[b].layout.tp) {
          continue;
        }
        FixedSettings fixed;
        fixed.placement = describe_placement(best);
        for (std::size_t r = 0; r < best.roles.size(); ++r) {
          const RolePlan& role = best.roles[r];
          fixed.values[{role.role, Field::gpus}] = static_cast<int>(role.ranks.size());
          const bool changed = r == a || r == b;
          if (!changed) fixed.values[{role.role, Field::pp}] = role.layout.pp;
          fixed.values[{role.role, Field::tp}] = r == a ? of_a : r == b ? of_b : role.layout.tp;
        }
        Problems problems;
        const auto outcome = planner.plan(fixed, Objective::step_time, problems);
        const Plan* plan = outcome ? std::get_if<Plan>(&*outcome) : nullptr;
        if (plan != nullptr) nearest = std::min(nearest, plan->prediction.step_s.value);
      }
    }
  }
  EXPECT_LT(nearest, std::numeric_limits<double>::infinity());
  EXPECT_LE(named->step_s, nearest * (1 + 1e-9));
}

TEST(Certificate, OfTheFewestGpusComparesPlansOnAsManyGpusByTime) {
  PlanRequest request = digits_request();
  request.fixed = {};
  request.objective = Objective::fewest_gpus;
  const Plan plan = planned(request);
  EXPECT_EQ(plan.certificate.value, plan.world_size());
  const std::string text = describe(plan);
  EXPECT_NE(text.find("certificate: gpus = " + std::to_string(plan.world_size()) + " GPUs, step"),
            std::string::npos);
  for (const RunnerUp& other : plan.certificate.runner_up) {
    EXPECT_GE(other.gpus, plan.world_size());
  }
}

TEST(Certificate, ComparesActorLayoutsWhereThereIsOnePlacement) {
  PlanRequest request = digits_request();
  request.fixed = {};
  const Plan plan = planned(request);
  ASSERT_FALSE(plan.certificate.runner_up.empty());
  EXPECT_TRUE(plan.certificate.runner_up[0].placement.starts_with("colocated"));
  EXPECT_GE(plan.certificate.runner_up[0].step_s, plan.certificate.value);
}

}  // namespace
}  // namespace tessera
