#include "simulator/run_end/stalls.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

using namespace std::chrono_literals;

RankStatus status(int rank, std::int64_t beats, bool waiting) {
  return {.rank = rank, .beats = beats, .waiting = waiting, .stall_limit_s = 10};
}

/// Three ranks that beat once a second for `seconds`, rank 2 as told.
StallWatch watched(int seconds, bool beats, bool waits) {
  StallWatch watch;
  const StallWatch::Clock::time_point begin{};
  for (int s = 0; s <= seconds; ++s) {
    watch.look({status(0, s, true), status(1, s, s % 2 == 0), status(2, beats ? s : 0, waits)},
               begin + std::chrono::seconds(s));
  }
  return watch;
}

TEST(Stalls, ARankWithoutASignOfLifeIsToldOnceItIsOverItsLimit) {
  EXPECT_FALSE(watched(10, false, true).over_limit());
  const auto stall = watched(11, false, true).over_limit();
  ASSERT_TRUE(stall);
  EXPECT_EQ(stall->rank, 2);
  EXPECT_EQ(stall->seconds, 11);
  EXPECT_TRUE(stall->silent);
  EXPECT_FALSE(watched(100, true, false).over_limit()) << "it gives signs of life";
}

TEST(Stalls, ARankThatOthersWaitForIsTheOneThatWaitsForNobody) {
  const auto busy = watched(9, true, false).waited_for();
  ASSERT_TRUE(busy);
  EXPECT_EQ(busy->rank, 2);
  EXPECT_FALSE(busy->silent);
  EXPECT_FALSE(watched(9, true, true).waited_for()) << "all wait";
  EXPECT_FALSE(watched(4, true, false).waited_for()) << "for less than half of the limit";
  const auto silent = watched(9, false, true).waited_for();
  ASSERT_TRUE(silent);
  EXPECT_TRUE(silent->silent);
}

/// A job that is suspended and goes on: the watching process sees the others as they were.
TEST(Stalls, TimeInWhichTheWatchStoodStillCountsForNobody) {
  StallWatch watch;
  const StallWatch::Clock::time_point begin{};
  for (const auto at : {0s, 1s, 3601s, 3602s}) {
    watch.look({status(0, 7, false), status(1, 7, true)}, begin + at);
    EXPECT_FALSE(watch.over_limit()) << at.count();
    EXPECT_FALSE(watch.waited_for()) << at.count();
  }
  for (const auto at : {3606s, 3611s})
    watch.look({status(0, 7, false), status(1, 9, true)}, begin + at);
  ASSERT_TRUE(watch.over_limit());
  EXPECT_EQ(watch.over_limit()->rank, 0);
}

TEST(Stalls, RanksThatHaveFinishedAndRanksThatDoNotSayAreLeftOut) {
  StallWatch watch;
  for (int s = 0; s < 60; ++s) {
    RankStatus finished = status(0, 1, false);
    finished.state = RankState::finished;
    watch.look({finished, status(1, s, false), status(2, s, false)},
               StallWatch::Clock::time_point{} + std::chrono::seconds(s));
  }
  EXPECT_FALSE(watch.over_limit());
  EXPECT_FALSE(watch.waited_for()) << "none was ever seen waiting: nothing tells who is late";
}

}  // namespace
}  // namespace tessera
