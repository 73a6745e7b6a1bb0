// The seconds of a start: every stage has its own, parts of one add up, and none is counted twice.
#include "executor/launch/start_stages.h"

#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "executor/launch/launch_age.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

void pause(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

TEST(StartStages, HaveTheSecondsSinceTheStageBefore) {
  StartStages stages;
  end_stage(stages, "processes");
  pause(120);
  end_stage(stages, "weights");
  pause(30);
  end_stage(stages, "groups");
  pause(130);
  end_stage(stages, "weights");
  ASSERT_EQ(stages.seconds.size(), 3U);
  EXPECT_EQ(stages.seconds[1].first, "weights");
  EXPECT_GE(stages.seconds[1].second, 0.23);
  EXPECT_GE(stages.seconds[2].second, 0.02);
  double sum = 0;
  for (const auto& [stage, seconds] : stages.seconds) sum += seconds;
  EXPECT_NEAR(sum, stages.until_s, 1e-6);
  EXPECT_LE(stages.until_s, seconds_since_launch());
}

TEST(StartStages, AreToldLongestFirstWithoutTheShort) {
  const StartStages stages{.seconds = {{"groups", 0.25}, {"weights", 12.34}, {"memory", 0.04}}};
  EXPECT_EQ(to_string(stages), "weights 12.3, groups 0.2");
  EXPECT_THAT(to_string(stages), Not(HasSubstr("memory")));
}

}  // namespace
}  // namespace tessera
