// Work that nobody wants any more ends in each of its parts, and not at the end of all.
#include "cost_models/documents/stopped.h"

#include <gtest/gtest.h>

#include <vector>

#include "cost_models/fit/learned_constants.h"
#include "planner/advice/run_advice.h"
#include "simulator/engine/link_loads.h"
#include "simulator/engine/memory_over_time.h"
#include "simulator/engine/role_costs.h"
#include "simulator/engine/simulate.h"
#include "simulator/reshard/methods.h"
#include "tests/simulator/network/llama_plans.h"

namespace tessera {
namespace {

std::stop_token stopped() {
  std::stop_source source;
  source.request_stop();
  return source.get_token();
}

/// Four cards of eight GPUs on leaves with half the links: what crosses nodes are flows.
const Plan& shared_plan() {
  static const Plan plan = planned(4, 2, {"placement=colocated"});
  return plan;
}

TEST(Stopped, EachPartOfASimulationEnds) {
  const Plan& plan = shared_plan();
  const Calibration calibration = constants();
  PlanCosts costs(plan, calibration);
  SimulationOptions options;
  const IterationTasks tasks = build_iteration(plan, calibration, options, costs);
  ASSERT_TRUE(tasks.shares_links);
  const NetworkRun done = run(tasks);
  const std::int64_t end_ns = end_of(done.runs);
  EXPECT_NO_THROW(end_if_stopped({}));
  EXPECT_THROW(run(tasks.graph, stopped()), Stopped);
  EXPECT_THROW(run(tasks.graph, tasks.network.flow_capacity(), stopped()), Stopped);
  EXPECT_THROW(memory_over_time(plan, costs, tasks, done.runs, stopped()), Stopped);
  EXPECT_THROW(link_loads(tasks, done, end_ns, 16, stopped()), Stopped);
  options.stop = stopped();
  EXPECT_THROW(build_iteration(plan, calibration, options, costs), Stopped);
  EXPECT_THROW(simulate(plan, calibration, options), Stopped);
}

TEST(Stopped, ATokenThatNobodyStoppedChangesNothing) {
  const std::stop_source source;
  SimulationOptions options;
  options.stop = source.get_token();
  EXPECT_EQ(simulate(shared_plan(), constants(), options), simulate(shared_plan(), constants()));
}

TEST(Stopped, AComparisonOfReshardsEndsBetweenItsMethods) {
  const Plan& plan = shared_plan();
  std::stop_source source;
  ReshardQuestion question{.table = parameter_table(plan.model_of(Role::actor)),
                           .from = rank_map_of(plan, Role::actor),
                           .to = plan.find(Role::rollout)->layout,
                           .to_ranks = plan.find(Role::rollout)->ranks,
                           .planned = rank_map_of(plan, Role::rollout),
                           .gather = {},
                           .cluster = plan.cluster,
                           .calibration = constants(),
                           .bucket = Bytes{0},
                           .stop = source.get_token()};
  const ReshardComparison comparison(question);
  EXPECT_NO_THROW(comparison.cost(ReshardMethod::window));
  source.request_stop();
  EXPECT_THROW(comparison.cost(ReshardMethod::window), Stopped);
  EXPECT_THROW(ReshardComparison{question}, Stopped);
}

// The stop comes while a prediction is made: no other is asked for.
TEST(Stopped, LearningEndsBetweenItsPredictions) {
  std::stop_source source;
  int predictions = 0;
  const Predictor predict = [&](const Calibration& calibration) {
    if (++predictions == 3) source.request_stop();
    return std::vector<double>{1 / calibration.matmul_flops.value};
  };
  const Calibration base = constants();
  const std::vector<MeasuredQuantity> measured{
      {"run", "update_actor", 2 / base.matmul_flops.value, 0.01}};
  EXPECT_THROW(learn_constants(base, measured, predict, "test", {.stop = source.get_token()}),
               Stopped);
  EXPECT_EQ(predictions, 3);
}

TEST(Stopped, AdviceEndsBetweenItsSearches) {
  EXPECT_THROW(advise(shared_plan(), Seconds{1}, constants(), nullptr, stopped()), Stopped);
}

}  // namespace
}  // namespace tessera
