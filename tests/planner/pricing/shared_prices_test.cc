// A candidate costs the same whatever was priced before it: what candidates share must be alike.
//
// Oracle: the same evaluator without a past.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
#include "planner/engines/engine.h"
#include "planner/pricing/evaluate.h"
#include "planner/request/describe.h"
#include "planner/request/plan_request.h"
#include "planner/space/layout_space.h"
#include "tests/planner/sample_requests.h"

namespace tessera {
namespace {

/// Nodes of six GPUs: groups of the same size lie on one node or on two.
PlanRequest odd_nodes(const std::string& model, const std::string& engine) {
  Workload workload = workload_of("grpo", KlPlace::none, false);
  workload.prompts_per_step = 48;
  workload.samples_per_prompt = 8;
  workload.prompt_tokens = 4096;
  workload.response_tokens = {2048, 0.5, 4096};
  Problems problems;
  PlanRequest request =
      request_of(read_model_spec(model, problems).value(), workload, cluster_of(6, 8, 80));
  EXPECT_TRUE(problems.empty());
  request.engine = engine;
  request.traits = traits_of(engine);
  return request;
}

/// Some candidates of all sizes, in no order.
std::vector<Candidate> some_of(const PlanRequest& request, Role role, std::mt19937& random) {
  std::vector<Candidate> some;
  for (const int gpus : {2, 6, 12, 24, 36, 48}) {
    std::vector<Candidate> all =
        enumerate_candidates(request, engine_named(request.engine).capabilities, role, gpus);
    std::shuffle(all.begin(), all.end(), random);
    all.resize(std::min<std::size_t>(all.size(), 60));
    some.insert(some.end(), all.begin(), all.end());
  }
  std::shuffle(some.begin(), some.end(), random);
  return some;
}

void compare(const PlanRequest& request, std::mt19937& random) {
  CostEvaluator shared(request);
  int compared = 0;
  for (const Role role : {Role::actor, Role::rollout}) {
    for (const Candidate& candidate : some_of(request, role, random)) {
      CostEvaluator fresh(request);
      const RoleCost before = fresh.cost(candidate), after = shared.cost(candidate);
      ASSERT_EQ(before.seconds, after.seconds)
          << request.engine << " " << name_of(role) << " " << describe_layout(candidate) << " on "
          << candidate.gpus;
      ASSERT_EQ(before.bytes, after.bytes) << request.engine << " " << describe_layout(candidate);
      ++compared;
    }
  }
  EXPECT_GT(compared, 200);
}

TEST(SharedPrices, DoNotDependOnWhatWasPricedBefore) {
  std::mt19937 random(5);
  for (const char* model : {"llama3.1-8b", "mixtral-8x7b"}) {
    for (const char* engine : {"tessera", "verl", "any"}) compare(odd_nodes(model, engine), random);
  }
}

}  // namespace
}  // namespace tessera
