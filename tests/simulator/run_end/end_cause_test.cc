// What ended a run, from the marks of its ranks.
#include "simulator/run_end/end_cause.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

constexpr int kRequeue = 138, kStopped = 130, kPeerLost = 75, kIo = 74;

RankStatus rank(int number, RankState state, int code = 0) {
  return {.rank = number, .pid = 1, .phase = "gen", .step = 4, .state = state, .exit_code = code};
}
RankStatus ended(int number, int code) { return rank(number, RankState::finished, code); }

struct Judged {
  EndCause cause;
  int rank = -1;
  bool operator==(const Judged&) const = default;
};
Judged judged(const std::vector<RankStatus>& ranks, const std::vector<int>& dead = {},
              StopReason stopped = StopReason::none, bool killed = false) {
  const RunCause end = cause_of_end(ranks, dead, stopped, killed);
  return {end.cause, end.rank == nullptr ? -1 : end.rank->rank};
}

TEST(EndCause, IsTheRankThatDiedAndNotThoseThatWaitedForIt) {
  const std::vector<RankStatus> ranks{ended(0, kPeerLost), rank(1, RankState::terminated),
                                      rank(2, RankState::running), rank(3, RankState::running)};
  EXPECT_EQ(judged(ranks, {3, 2}), (Judged{EndCause::lost, 3}));
  EXPECT_EQ(judged(ranks, {7, 2}), (Judged{EndCause::lost, 2}));  // there is no rank 7
  EXPECT_EQ(judged(ranks), (Judged{EndCause::lost_peer, 0}));     // both go on
}

TEST(EndCause, IsAnErrorOfARanksOwnBeforeWhateverCameOfIt) {
  EXPECT_EQ(judged({rank(0, RankState::running), ended(1, kIo), ended(2, kPeerLost)}, {0},
                   StopReason::stop),
            (Judged{EndCause::failed, 1}));
}

TEST(EndCause, IsWhatTheRunWasAskedWhereItsRanksDiedOfThat) {
  EXPECT_EQ(judged({rank(0, RankState::running)}, {0}, StopReason::stop),
            (Judged{EndCause::killed, 0}));
  EXPECT_EQ(judged({}, {}, StopReason::requeue, true), (Judged{EndCause::killed}));
  EXPECT_EQ(judged({ended(0, kStopped)}, {}, StopReason::stop), (Judged{EndCause::asked}));
  EXPECT_EQ(judged({ended(0, kRequeue)}, {}, StopReason::requeue), (Judged{EndCause::requeued, 0}));
  EXPECT_EQ(judged({ended(0, kStopped)}), (Judged{EndCause::by_rule, 0}));
}

TEST(EndCause, IsNoErrorOfARankThatWasToEnd) {
  EXPECT_TRUE(ended_by_error(ended(0, kIo)));
  EXPECT_TRUE(ended_by_error(ended(0, kPeerLost)));
  for (const int code : {0, kStopped, kRequeue}) EXPECT_FALSE(ended_by_error(ended(0, code)));
  EXPECT_FALSE(ended_by_error(rank(0, RankState::terminated)));
}

TEST(EndCause, IsNoneOfARunThatEndsWellOrGoesOn) {
  EXPECT_EQ(judged({ended(0, 0), ended(1, 0)}), (Judged{EndCause::none}));
  EXPECT_EQ(judged({rank(0, RankState::running), ended(1, 0)}), (Judged{EndCause::none}));
}

}  // namespace
}  // namespace tessera
