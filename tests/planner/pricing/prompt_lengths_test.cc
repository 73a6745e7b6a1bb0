// Prompts with a mean and a longest: what prices read of each.
#include <gtest/gtest.h>

#include "planner/engines/engine.h"
#include "planner/pricing/evaluate.h"
#include "tests/planner/pricing/small_request.h"

namespace tessera {
namespace {

/// Times are those of prompts that all have the mean; memory holds the longest, where the limit of
/// tokens alone would not.
TEST(PromptLengths, TimesCountTheMeanAndMemoryHoldsTheLongest) {
  PlanRequest alike = small_request(), apart = small_request(), longest = small_request();
  alike.workload.prompt_tokens = apart.workload.prompt_tokens = 128;
  apart.workload.prompt_max = longest.workload.prompt_tokens = 4096;
  CostEvaluator by_mean(alike), by_both(apart), by_longest(longest);
  Candidate actor{{.tp = 4, .dp = 4}, Role::actor, 16, 0, 2048};
  const RoleCost mean = by_mean.cost(actor), both = by_both.cost(actor);
  const RoleCost most = by_longest.cost(actor);
  for (const Phase phase : {Phase::old_log_prob, Phase::update_actor}) {
    EXPECT_EQ(both.seconds[phase], mean.seconds[phase]);
    EXPECT_LT(both.seconds[phase], most.seconds[phase]);
    EXPECT_EQ(both.bytes[phase], most.bytes[phase]);
    EXPECT_GT(both.bytes[phase], mean.bytes[phase]);
  }
  Candidate rollout{{.tp = 4, .dp = 4}, Role::rollout, 16, 0, 4096, 64};
  EXPECT_EQ(by_both.memory(rollout, Phase::gen), by_longest.memory(rollout, Phase::gen));
  EXPECT_EQ(by_both.cost(rollout).seconds[Phase::gen], by_mean.cost(rollout).seconds[Phase::gen]);
}

/// Of many sequences the prompts have their mean; one alone may be the longest.
TEST(PromptLengths, APagedCacheHoldsOneLongest) {
  const auto memory = [](std::int64_t mean, std::int64_t longest, std::int64_t slots) {
    PlanRequest request = small_request();
    request.workload.prompt_tokens = mean;
    request.workload.prompt_max = longest;
    request.engine = "verl";
    request.traits = traits_of("verl");
    CostEvaluator costs(request);
    const Candidate rollout{{.tp = 4, .dp = 4}, Role::rollout, 16, 0, 4096, slots};
    return costs.memory(rollout, Phase::gen).kv_cache;
  };
  EXPECT_EQ(memory(128, 4096, 1), memory(4096, 0, 1));
  EXPECT_EQ(memory(128, 4096, 64), memory(128, 0, 64));
}

}  // namespace
}  // namespace tessera
