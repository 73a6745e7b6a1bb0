#include "simulator/engine/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "planner/pricing/evaluate.h"
#include "planner/pricing/memory_limit.h"
#include "tests/simulator/sample_plans.h"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::Not;

Plan pipeline_plan() {
  Plan plan = plan_of_calls({{Phase::update_actor, Role::actor, CallKind::train, {"prompts"}, {}}});
  plan.roles = {hand_role(plan, Role::actor, 0, 2, 2, 1, 24)};
  return plan;
}

TEST(Report, TasksOfAKindAreOneLineOfTheCriticalPath) {
  const Plan plan = pipeline_plan();
  const Simulation simulation = simulate(plan, arithmetic_only());
  const std::vector<PathShare> shares = path_shares(simulation);
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[0].name, "B");  // backward is twice as long
  EXPECT_EQ(shares[1].name, "F");
  EXPECT_NEAR(shares[0].seconds + shares[1].seconds, simulation.step_s, 1e-12);
  EXPECT_EQ(shares[0].tasks + shares[1].tasks, std::ssize(simulation.critical_path));
}

TEST(Report, NamesTheRanksThatDoNotFit) {
  Plan plan = pipeline_plan();
  const Calibration calibration = arithmetic_only();
  const Simulation simulation = simulate(plan, calibration);
  EXPECT_THAT(to_text(simulation, plan, calibration), Not(HasSubstr("DOES NOT FIT")));
  EXPECT_THAT(to_text(simulation, plan, calibration), HasSubstr("update_actor"));
  plan.cluster.device.memory.value = simulation.peak_bytes() - 1;
  EXPECT_THAT(to_text(simulation, plan, calibration), HasSubstr("DOES NOT FIT"));
}

TEST(Report, TheJsonHoldsTheSameNumbers) {
  const Plan plan = pipeline_plan();
  const Calibration calibration = arithmetic_only();
  const Simulation simulation = simulate(plan, calibration);
  const auto json = nlohmann::json::parse(to_json(simulation, plan, calibration));
  EXPECT_EQ(json.at("step_s"), simulation.step_s);
  EXPECT_EQ(json.at("peak_bytes"), simulation.peak_bytes());
  EXPECT_EQ(json.at("limit_bytes"), usable_memory(plan, calibration).value);
  EXPECT_EQ(json.at("ranks").size(), 4u);
  EXPECT_EQ(json.at("phases").at(0).at("phase"), "update_actor");
  EXPECT_EQ(json.at("critical_path").size(), simulation.critical_path.size());
  EXPECT_EQ(json.at("critical_path").back().at("end_ns").get<double>() * 1e-9, simulation.step_s);
}

}  // namespace
}  // namespace tessera
