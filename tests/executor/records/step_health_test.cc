#include "executor/records/step_health.h"

#include <gtest/gtest.h>

#include <limits>

#include "cost_models/compute.h"
#include "planner/plan/plan.h"
#include "tests/planner/plan/sample_plan.h"

namespace tessera {
namespace {

TEST(StepHealth, TheActorsMfuIsThatOfItsSequencesAndDevices) {
  Plan plan = sample_plan();
  plan.workload.epochs = 2;
  plan.cluster.device.peak_bf16 = FlopsPerSecond{1e12};
  Sequence sequence;
  sequence.prompt.assign(30, 1);
  sequence.response.assign(70, 2);
  const Experience experience{.sequences = {sequence, sequence}};
  const Metrics metrics = health_metrics(plan, experience, {{"timing_s/update_actor", 0.5}});
  const double flops = 2 * 2 * 3 * 100 * forward_flops_per_token(plan.model_of(Role::actor), 100);
  const auto gpus = static_cast<double>(plan.find(Role::actor)->ranks.size());
  EXPECT_NEAR(metrics.at("perf/mfu/actor"), flops / 0.5 / (1e12 * gpus), 1e-12);
  EXPECT_EQ(health_metrics(plan, experience, {}).count("perf/mfu/actor"), 0u);
}

// A rank that came late sees a short reshard: its own rate is above that of the step.
TEST(StepHealth, TheRateOfAReshardIsItsBytesInItsSeconds) {
  const Sequence sequence{.prompt = {1}, .response = {2}};
  Metrics numbers{{"reshard/bytes", 93184}, {"reshard/seconds", 0.5}};
  add_step_numbers(sample_plan(), {.sequences = {sequence}}, 2.0, numbers);
  EXPECT_NEAR(numbers.at("reshard/gbps"), 1.86368e-4, 1e-12);
  Metrics none;
  add_step_numbers(sample_plan(), {.sequences = {sequence}}, 2.0, none);
  EXPECT_EQ(none.count("reshard/gbps"), 0u);
}

TEST(StepHealth, NumbersThatAreNoneAreCounted) {
  Plan plan = sample_plan();
  plan.workload.mini_batches = 4;
  plan.workload.epochs = 1;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Metrics metrics = health_metrics(plan, {},
                                         {{"actor/pg_loss", nan},
                                          {"critic/vf_loss", 1 / 0.0},
                                          {"actor/grad_norm", 1},
                                          {"timing_s/x", nan},
                                          {"actor/skipped_share", 0.25},
                                          {"critic/skipped_share", 0.5}});
  EXPECT_EQ(metrics.at("training/not_finite"), 2);
  EXPECT_EQ(metrics.at("training/skipped_updates"), 3);
  const Metrics host = host_memory_metrics();
  EXPECT_GT(host.at("perf/cpu_memory_used_gb"), 0.01);
}

}  // namespace
}  // namespace tessera
