// Plans whose stages no search would cut: their prices against what runs operation after operation.
#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <vector>

#include "planner/engines/engine.h"
#include "planner/explain/planner.h"
#include "planner/interop/price.h"
#include "planner/plan/phase_seconds.h"
#include "planner/pricing/memory_limit.h"
#include "planner/request/plan_request.h"
#include "simulator/engine/simulate.h"
#include "tests/simulator/sample_plans.h"

namespace tessera {
namespace {

struct OwnStages {
  std::string told;
  std::vector<std::string> fixed;
  std::vector<std::int64_t> layers;  // of each chunk
  double cv = 0;                     // of the responses' lengths
};

PlanRequest request_of(const OwnStages& own) {
  Workload workload = workload_of("grpo", KlPlace::loss, false);
  workload.prompts_per_step = own.cv > 0 ? 16 : 128;
  workload.samples_per_prompt = own.cv > 0 ? 1 : 4;
  workload.prompt_tokens = 1024;
  workload.response_tokens = {1024, own.cv, own.cv > 0 ? 4096 : 1024};
  workload.mini_batches = own.cv > 0 ? 1 : 2;
  PlanRequest request = request_of(llama_8b(), workload, cluster_of(8, 1, 80));
  request.engine = "any";
  request.traits = traits_of("any");
  Problems problems;
  request.fixed = parse_settings(own.fixed, problems);
  EXPECT_TRUE(problems.empty());
  return request;
}

std::vector<LayerRange> ranges_of(const std::vector<std::int64_t>& layers) {
  std::vector<LayerRange> ranges;
  std::int64_t first = 0;
  for (const std::int64_t each : layers) {
    ranges.push_back({first, first + each});
    first += each;
  }
  return ranges;
}

// The search's plan with these stages in all that trains or scores, and its prices.
Plan with_own_stages(const PlanRequest& request, const OwnStages& own, Pricing& pricing) {
  Problems problems;
  auto outcome = make_plan(request, problems);
  if (!outcome || std::get_if<Plan>(&*outcome) == nullptr) {
    ADD_FAILURE() << own.told;
    return {};
  }
  Plan plan = std::get<Plan>(*std::move(outcome));
  for (RolePlan& role : plan.roles) {
    const int chunks = role.layout.pp * role.layout.vpp;
    if (role.role != Role::rollout && chunks == std::ssize(own.layers)) {
      role.layout.stages = ranges_of(own.layers);
    }
  }
  EXPECT_EQ(plan.find(Role::actor)->layout.stages, ranges_of(own.layers)) << own.told;
  pricing = price(plan, request.calibration);
  return plan;
}

double simulated_phase(const Plan& plan, const PlanRequest& request, Phase phase, int draws) {
  double seconds = 0;
  for (int draw = 0; draw < draws; ++draw) {
    SimulationOptions options;
    options.seed = static_cast<std::uint64_t>(draw) + 1;
    seconds += simulate(plan, request.calibration, options).phases_s.at(phase) / draws;
  }
  return seconds;
}

TEST(OwnStages, ArePricedAsTheyAreSimulated) {
  const std::vector<std::string> plain{"actor.pp=4", "actor.vpp=1", "reference.pp=4"};
  const std::vector<std::string> interleaved{"actor.pp=4", "actor.vpp=2", "reference.pp=4"};
  for (const OwnStages& own : std::vector<OwnStages>{
           {"one stage with most layers", plain, {1, 1, 29, 1}},
           {"the first with most", plain, {20, 4, 4, 4}},
           {"a little uneven", plain, {7, 9, 9, 7}},
           {"chunks", interleaved, {1, 4, 4, 8, 2, 6, 6, 1}},
           {"chunks of which one has most", interleaved, {1, 1, 25, 1, 1, 1, 1, 1}}}) {
    const PlanRequest request = request_of(own);
    Pricing pricing;
    const Plan plan = with_own_stages(request, own, pricing);
    ASSERT_FALSE(plan.roles.empty());
    const Simulation simulated = simulate(plan, request.calibration);
    EXPECT_EQ(simulated.peak_bytes(), plan.prediction.peak_bytes) << own.told;
    EXPECT_EQ(pricing.fits,
              plan.prediction.peak_bytes <= memory_limit(request) + reserve_of(request))
        << own.told;
    EXPECT_NEAR(plan.prediction.step_s.value / simulated.step_s, 1, 0.05) << own.told;
    for (const Phase phase : {Phase::old_log_prob, Phase::update_actor}) {
      EXPECT_NEAR(plan.prediction.phases_s.at(phase).value / simulated.phases_s.at(phase), 1, 0.05)
          << own.told << ", " << name_of(phase);
    }
  }
}

// A stage that has nearly all layers does not wait for the fullest micro-batch of another.
TEST(OwnStages, OfMicroBatchesThatDifferArePricedAsTheyAreSimulatedOnAverage) {
  for (const OwnStages& own :
       std::vector<OwnStages>{{"one stage with most layers",
                               {"actor.pp=4", "actor.vpp=1", "actor.tokens=5120", "reference.pp=4"},
                               {1, 1, 29, 1},
                               1.0},
                              {"halves and eighths",
                               {"actor.pp=4", "actor.vpp=1", "actor.tokens=5120", "reference.pp=4"},
                               {16, 4, 8, 4},
                               1.0}}) {
    const PlanRequest request = request_of(own);
    Pricing pricing;
    const Plan plan = with_own_stages(request, own, pricing);
    ASSERT_FALSE(plan.roles.empty());
    for (const Phase phase : {Phase::old_log_prob, Phase::update_actor}) {
      EXPECT_NEAR(
          plan.prediction.phases_s.at(phase).value / simulated_phase(plan, request, phase, 32), 1,
          0.06)
          << own.told << ", " << name_of(phase);
    }
  }
}

}  // namespace
}  // namespace tessera
