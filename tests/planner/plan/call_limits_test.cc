#include "planner/plan/call_limits.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(CallLimits, TheCallsThatTrainAreUpdates) {
  int trained = 0;
  for (const char* algorithm : {"ppo", "grpo"}) {
    for (const KlPlace kl : {KlPlace::none, KlPlace::loss, KlPlace::reward}) {
      for (const Call& call : preset_dataflow(algorithm, kl, true)) {
        EXPECT_EQ(updates(call.phase), call.kind == CallKind::train) << name_of(call.phase);
        trained += call.kind == CallKind::train ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(trained, 9);  // PPO's critic and actor, GRPO's actor
  for (const Phase phase : {Phase::load, Phase::reshard, Phase::save_checkpoint}) {
    EXPECT_FALSE(updates(phase)) << name_of(phase);
  }
}

TEST(CallLimits, TheCallsThatRunAModelHaveALimit) {
  for (const Call& call : preset_dataflow("ppo", KlPlace::loss, true)) {
    EXPECT_EQ(limit_of(call.phase) != nullptr, call.kind != CallKind::compute)
        << name_of(call.phase);
  }
  const Batching batching{.update_tokens = 7, .log_prob_tokens = 5};
  EXPECT_EQ(token_limit(batching, Phase::ref), 5);
  EXPECT_EQ(token_limit(batching, Phase::update_critic), 7);
  EXPECT_EQ(token_limit(batching, Phase::adv), 0);
}

}  // namespace
}  // namespace tessera
