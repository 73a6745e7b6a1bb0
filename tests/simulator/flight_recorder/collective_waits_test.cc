// Whom the others wait for, from the flight records of ranks that stand still.
#include "simulator/flight_recorder/collective_waits.h"

#include <gmock/gmock.h>

#include <deque>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Ranks of a world with a group of two in it; what they note is read again as others would.
class Waits : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = fs::temp_directory_path() / "tessera-waits-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    run_ = pattern;
  }
  void TearDown() override { fs::remove_all(run_); }

  /// A rank, its world and its pair: {0, 1} or {2, 3}.
  struct Rank {
    FlightRecorder recorder;
    int world = 0, pair = 0;
    void does(int group, CollectiveKind kind, bool ends = true, std::int64_t bytes = 4) {
      const std::int64_t number = recorder.begin(group, {.kind = kind, .bytes = bytes});
      if (ends) recorder.end(number);
    }
    void enqueues(int group, CollectiveKind kind, int times = 1) {
      for (int i = 0; i < times; ++i) recorder.begin(group, {.kind = kind, .enqueued = true});
    }
    /// As a thread of the rank does that sees an event behind the group's work passed.
    void notes_end(int group) { recorder.end_until(group, recorder.begun(group)); }
    void asks(int member) {
      recorder.begin(pair, {.kind = CollectiveKind::exchange, .peers = peer_bit(member)});
    }
  };

  void make(int ranks) {
    for (int r = 0; r < ranks; ++r) {
      Rank& rank = ranks_.emplace_back();
      rank.recorder.keep_in(run_, r);
      rank.world = rank.recorder.add_group("world", "world", ranks, r);
      rank.pair =
          rank.recorder.add_group("world/0." + std::to_string(r / 2 * 2), "actor tp", 2, r % 2);
      rank.recorder.enter("gen", 5);
    }
  }

  std::vector<FlightRecord> records() {
    std::vector<FlightRecord> records;
    for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) {
      std::string reason;
      auto record = read_flight_record(run_, r, reason);
      EXPECT_TRUE(record) << reason;
      if (record) records.push_back(*std::move(record));
    }
    return records;
  }
  CollectiveWaits found(std::int64_t until_ns = kNoLimit) {
    return collective_waits(records(), until_ns);
  }
  std::vector<std::string> said() { return sentences_of(found(), records()); }

  fs::path run_;
  std::deque<Rank> ranks_;
};

constexpr auto kReduce = CollectiveKind::all_reduce;
constexpr auto kGather = CollectiveKind::all_gather;

TEST_F(Waits, NobodyWaitsWhereAllHaveEnded) {
  make(4);
  for (Rank& rank : ranks_) rank.does(rank.world, kReduce);
  const CollectiveWaits waits = found();
  EXPECT_THAT(waits.waits, IsEmpty());
  EXPECT_THAT(waits.mismatches, IsEmpty());
  EXPECT_THAT(said(), IsEmpty());
}

TEST_F(Waits, TheRankThatDidNotEnterIsNamedWithTheCollectiveOfTheOthers) {
  make(4);
  for (Rank& rank : ranks_) rank.does(rank.world, kReduce);
  for (const int r : {0, 1, 3}) {
    ranks_[static_cast<std::size_t>(r)].does(0, kGather, /*ends=*/false, 4096);
  }
  const CollectiveWaits waits = found();
  ASSERT_EQ(waits.waits.size(), 1U);
  EXPECT_THAT(waits.waits[0].waiting, ElementsAre(0, 1, 3));
  EXPECT_THAT(waits.waits[0].absent, ElementsAre(2));
  EXPECT_EQ(waits.waits[0].what.kind, kGather);
  EXPECT_EQ(waits.waits[0].what.sequence, 2);
  EXPECT_THAT(waits.waited_for, ElementsAre(2));
  EXPECT_THAT(said(), Contains(HasSubstr("rank 2 is waited for, and waits for nobody; its last "
                                         "was all_reduce 1 of world (4 bytes of uint8)")));
  EXPECT_THAT(said(), Contains(HasSubstr("ranks 0, 1, 3 wait in all_gather 2 of world (4.1 kB of "
                                         "uint8) of step 5, phase gen, since ")));
  EXPECT_THAT(said(), Contains(HasSubstr("rank 2 has not entered it")));
}

// Rank 1 keeps rank 0 waiting, and with it the ranks that wait for rank 0.
TEST_F(Waits, WhoWaitsHimselfIsNotTheCause) {
  make(4);
  ranks_[0].does(ranks_[0].pair, kReduce, false);
  ranks_[2].does(ranks_[2].world, kReduce, false);
  ranks_[3].does(ranks_[3].world, kReduce, false);
  EXPECT_THAT(found().waited_for, ElementsAre(1));
  EXPECT_EQ(found().waits.size(), 2U);
}

// After a lost peer a rank tries to end together with the others: that it waits there is no news.
TEST_F(Waits, WhatARankTriesAfterAFailureDoesNotCount) {
  make(2);
  ranks_[0].does(ranks_[0].pair, kReduce, false);
  ranks_[0].does(ranks_[0].world, CollectiveKind::barrier, false);
  const CollectiveWaits waits = found();
  ASSERT_EQ(waits.waits.size(), 1U);
  EXPECT_EQ(waits.waits[0].group, "actor tp");
}

// Stopped within a collective whose others have had all that they needed of it.
TEST_F(Waits, WhoStandsStillInWhatTheOthersHaveLeftIsTheCause) {
  make(4);
  for (std::size_t r = 0; r < 4; ++r) ranks_[r].does(0, kGather, r != 2);
  for (const std::size_t r : {0U, 1U, 3U}) ranks_[r].does(0, kReduce, false);
  const CollectiveWaits waits = found();
  ASSERT_EQ(waits.waits.size(), 2U);
  EXPECT_THAT(waits.waits[0].waiting, ElementsAre(0, 1, 3));
  EXPECT_THAT(waits.waits[0].absent, ElementsAre(2));
  EXPECT_THAT(waits.waits[1].waiting, ElementsAre(2));
  EXPECT_THAT(waits.waits[1].left, ElementsAre(0, 1, 3));
  EXPECT_THAT(waits.waited_for, ElementsAre(2));
  EXPECT_THAT(said(), Contains(HasSubstr("rank 2 is waited for, and has not come back from "
                                         "all_gather 1 of world (4 bytes of uint8), which its "
                                         "peers have left")));
}

// The same in an exchange: the peer has sent and received, and waits in another group.
TEST_F(Waits, WhoStandsStillInAnExchangeIsTheCauseToo) {
  make(2);
  ranks_[1].asks(0);
  const std::int64_t done = ranks_[0].recorder.begin(
      ranks_[0].pair, {.kind = CollectiveKind::exchange, .peers = peer_bit(1)});
  ranks_[0].recorder.end(done);
  ranks_[0].does(0, kReduce, false);
  EXPECT_THAT(found().waited_for, ElementsAre(1));
}

TEST_F(Waits, AllInOneCollectiveIsSaid) {
  make(2);
  for (Rank& rank : ranks_) rank.does(rank.world, kReduce, false);
  EXPECT_THAT(found().waited_for, IsEmpty());
  EXPECT_THAT(said(), ElementsAre(HasSubstr("all have entered it")));
}

TEST_F(Waits, AnExchangeWaitsForItsPeersAlone) {
  make(4);
  ranks_[2].asks(1);  // of rank 3, which is in another place
  const CollectiveWaits waits = found();
  ASSERT_EQ(waits.waits.size(), 1U);
  EXPECT_THAT(waits.waits[0].absent, ElementsAre(3));
  EXPECT_THAT(waits.waited_for, ElementsAre(3));
  ranks_[3].asks(0);
  EXPECT_THAT(found().waited_for, IsEmpty());
}

TEST_F(Waits, DifferentCallsOfOneSequenceAreTold) {
  make(2);
  ranks_[0].does(0, kReduce, false, 4096);
  ranks_[1].does(0, kGather, false, 4096);
  EXPECT_THAT(said(), Contains(HasSubstr("ranks 0 and 1 have called different things: all_reduce "
                                         "1 of world (4.1 kB of uint8), all_gather 1 of world")));
  ranks_.clear();
  make(2);
  ranks_[0].does(0, kReduce, true, 4);
  ranks_[1].does(0, kReduce, true, 8);
  EXPECT_EQ(found().mismatches.size(), 1U);
}

TEST_F(Waits, RanksThatWaitForOneAnotherAreNobodysFault) {
  make(2);
  ranks_[0].does(ranks_[0].pair, kReduce, false);
  ranks_[1].does(ranks_[1].world, kReduce, false);
  EXPECT_THAT(found().waited_for, IsEmpty());
  EXPECT_THAT(said(), Contains(HasSubstr("they wait for one another")));
}

TEST_F(Waits, WorkThatIsEnqueuedIsJudgedByWhoHasNotEnqueuedIt) {
  make(2);
  ranks_[0].enqueues(0, kReduce, 3);
  ranks_[1].enqueues(0, kReduce, 2);
  EXPECT_THAT(found().waited_for, ElementsAre(1));
  EXPECT_THAT(said(), ElementsAre(testing::AllOf(HasSubstr("rank 0 has enqueued all_reduce 3 of "
                                                           "world"),
                                                 HasSubstr("rank 1 has not entered it")),
                                  HasSubstr("its last was all_reduce 2 of world")));
}

// A rank that is stopped or killed never notes that its work on the stream has ended.
TEST_F(Waits, EnqueuedWorkThatAnotherHasEndedIsNoWait) {
  make(2);
  for (Rank& rank : ranks_) {
    rank.enqueues(rank.pair, kGather);
    rank.recorder.begin(
        rank.pair,
        {.kind = CollectiveKind::exchange, .peers = peer_bit(0) | peer_bit(1), .enqueued = true});
    rank.enqueues(rank.world, kReduce);
  }
  for (const int group : {ranks_[0].pair, ranks_[0].world}) ranks_[0].notes_end(group);
  EXPECT_THAT(said(), IsEmpty());
  ranks_[0].enqueues(ranks_[0].world, kGather);
  EXPECT_THAT(said(), ElementsAre(HasSubstr("rank 0 has enqueued all_gather 2 of world"),
                                  HasSubstr("rank 1 is waited for")));
}

// The other rank has not noted the end either, and has put more work behind it.
TEST_F(Waits, EnqueuedWorkBehindWhichAnotherHasEnqueuedMoreIsNoWait) {
  make(4);
  for (Rank& rank : ranks_) rank.enqueues(rank.world, kReduce, 2);
  ranks_[1].enqueues(0, kGather);
  const CollectiveWaits waits = found();
  ASSERT_EQ(waits.waits.size(), 1U);
  EXPECT_THAT(waits.waits[0].waiting, ElementsAre(1));
  EXPECT_THAT(waits.waits[0].absent, ElementsAre(0, 2, 3));
}

// A root has had its part of a broadcast that a third has not entered.
TEST_F(Waits, EnqueuedWorkThatSomebodyHasNotEnteredIsAWaitThoughAnotherHasEndedIt) {
  make(4);
  for (const std::size_t r : {0U, 1U, 2U}) ranks_[r].enqueues(0, CollectiveKind::broadcast);
  ranks_[0].notes_end(0);
  const CollectiveWaits waits = found();
  ASSERT_EQ(waits.waits.size(), 1U);
  EXPECT_THAT(waits.waits[0].waiting, ElementsAre(1, 2));
  EXPECT_THAT(waits.waits[0].absent, ElementsAre(3));
  EXPECT_THAT(waits.waits[0].left, ElementsAre(0));
}

TEST_F(Waits, TheLastOfAWaitedForRankIsItsLatestOfAllGroups) {
  make(2);
  for (Rank& rank : ranks_) {
    rank.enqueues(rank.pair, kGather);
    rank.enqueues(rank.world, kReduce);
  }
  ranks_[0].enqueues(0, kReduce);
  EXPECT_THAT(said(), Contains(HasSubstr("its last was all_reduce 1 of world")));
}

// What somebody has not entered comes first, though others are older.
TEST_F(Waits, OfWorkThatAllHaveEnqueuedTheOldestAloneIsToldAndLast) {
  make(4);
  for (Rank& rank : ranks_) rank.enqueues(rank.pair, kGather);
  for (Rank& rank : ranks_) rank.enqueues(rank.world, kReduce);
  EXPECT_THAT(said(), ElementsAre(HasSubstr("ranks 0, 1 have enqueued all_gather 1 of actor tp")));
  ranks_[2].enqueues(0, kReduce);
  ranks_[3].enqueues(0, kReduce);
  for (const std::size_t r : {0U, 2U, 3U}) ranks_[r].notes_end(ranks_[r].pair);
  for (const std::size_t r : {0U, 1U}) ranks_[r].enqueues(ranks_[r].pair, kReduce);
  EXPECT_THAT(said(),
              ElementsAre(HasSubstr("ranks 0, 1 have not entered it"),
                          HasSubstr("rank 0 is waited for"), HasSubstr("rank 1 is waited for"),
                          HasSubstr("ranks 0, 1 have enqueued all_reduce 2 of actor tp")));
}

TEST_F(Waits, DifferentWorkThatIsEnqueuedIsToldFirst) {
  make(2);
  ranks_[0].enqueues(0, kReduce, 2);
  ranks_[1].enqueues(0, kGather);
  EXPECT_THAT(said(), ElementsAre(HasSubstr("have called different things: all_reduce 1 of world"),
                                  HasSubstr("rank 1 has not entered it"),
                                  HasSubstr("rank 1 is waited for")));
}

TEST_F(Waits, OfARunThatLivesShortWaitsAreNone) {
  make(2);
  ranks_[0].does(0, kReduce, false);
  EXPECT_EQ(found(0).waits.size(), 0U);
}

TEST_F(Waits, RecordsOfOtherProcessesAndMissingOnesAreTold) {
  make(2);
  const std::vector<RankStatus> ranks = {
      {.rank = 0, .pid = ::getpid()}, {.rank = 1, .pid = ::getpid() + 1}, {.rank = 2, .pid = 1}};
  const FlightRecords all = read_flight_records(run_, ranks);
  EXPECT_EQ(all.records.size(), 1U);
  EXPECT_THAT(all.troubles, ElementsAre(HasSubstr("rank 1 has no record of its collectives: it is "
                                                  "of process "),
                                        HasSubstr("No such file")));
  // As of a copy of a run of another host.
  fs::remove_all(run_ / "ranks");
  EXPECT_THAT(read_flight_records(run_, ranks).troubles,
              ElementsAre("no rank has left a record of its collectives"));
}

}  // namespace
}  // namespace tessera
