// Which calls are one chunk, and how long the step takes.
#include "planner/pricing/iteration.h"

#include <gtest/gtest.h>

#include "planner/plan/phase_seconds.h"
#include "tests/planner/sample_requests.h"

namespace tessera {
namespace {

TEST(Iteration, MergesCallsThatOnlyFollowOneAnother) {
  const Workload ppo = workload_of("ppo", KlPlace::reward, true);
  const auto schedule = default_schedule(ppo);
  EnumArray<Phase, int> blocks;
  EXPECT_EQ(Iteration(schedule, blocks).chunks().size(), 1);
  for (const Phase phase : {Phase::values, Phase::update_critic}) {
    blocks[phase] = 1;
  }
  const Iteration split(schedule, blocks);
  EXPECT_EQ(split.chunk_of(Phase::reshard), split.chunk_of(Phase::gen));
  EXPECT_NE(split.chunk_of(Phase::gen), split.chunk_of(Phase::values));
  PhaseSeconds seconds{};
  seconds.fill(Seconds{1});
  seconds[Phase::update_critic] = Seconds{10};
  // reshard, gen, then old_log_prob, ref, reward, adv on the actor's block; the critic ends last.
  EXPECT_DOUBLE_EQ(split.step_seconds(seconds), 2 + 4 + 10);
}

TEST(Iteration, MergesCallsOfOneBlockThatWaitForTheSameCall) {
  const auto schedule = default_schedule(workload_of("ppo", KlPlace::reward, true));
  using enum Role;
  const Placement apart{{actor, critic, reference, reward}, {rollout}};
  for (const int lag : {0, 1}) {
    const auto calls = schedule_of(schedule, apart, lag);
    const Iteration iteration(calls, blocks_of(calls, apart));
    EXPECT_EQ(iteration.chunks().size(), lag == 0 ? 2 : 3);
    EXPECT_EQ(iteration.chunk_of(Phase::values), iteration.chunk_of(Phase::update_actor));
  }
}

}  // namespace
}  // namespace tessera
