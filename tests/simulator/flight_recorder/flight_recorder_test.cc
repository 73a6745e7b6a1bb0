// The last collectives of a rank in its file: what survives SIGKILL, and files that are damaged.
#include "simulator/flight_recorder/flight_recorder.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <string>

#include "cost_models/documents/problem.h"
#include "simulator/flight_recorder/flight_layout.h"
#include "simulator/flight_recorder/flight_record.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class Flight : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = fs::temp_directory_path() / "tessera-flight-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    run_ = pattern;
  }
  void TearDown() override { fs::remove_all(run_); }

  FlightRecord read(int rank = 3) {
    auto record = read_flight_record(run_, rank, reason_);
    EXPECT_TRUE(record) << reason_;
    return record ? *std::move(record) : FlightRecord{};
  }
  fs::path file() const { return run_ / "ranks/3.collectives"; }

  fs::path run_;
  std::string reason_;
};

// Noted before there was a folder, in two groups, one of which has a name of its own.
void note_some(FlightRecorder& recorder, const fs::path& run) {
  const int world = recorder.add_group("world", "world", 4, 3);
  recorder.end(recorder.begin(world, {.kind = CollectiveKind::barrier}));
  recorder.keep_in(run, 3);
  recorder.enter("gen", 7);
  const int tp = recorder.add_group("world/0.2", "world/0", 2, 1);
  recorder.name_group(tp, "actor tp");
  recorder.end(
      recorder.begin(tp, {.kind = CollectiveKind::all_reduce, .bytes = 4096, .type = DType::bf16}));
  recorder.begin(tp, {.kind = CollectiveKind::exchange, .bytes = 8, .peers = peer_bit(0)});
}

TEST_F(Flight, WhatARankNotedLastIsThereAfterSigkill) {
  const int pid = ::fork();
  if (pid == 0) {
    FlightRecorder recorder;
    note_some(recorder, run_);
    ::raise(SIGKILL);
  }
  ::waitpid(pid, nullptr, 0);
  const FlightRecord record = read();
  EXPECT_EQ(record.damaged, 0);
  ASSERT_EQ(record.last.size(), 3U);
  EXPECT_EQ(record.last[0].kind, CollectiveKind::barrier);
  EXPECT_EQ(record.last[0].phase, "load");
  EXPECT_EQ(record.last[0].state, CollectiveState::ended);
  const LastCollective& reduced = record.last[1];
  EXPECT_EQ(record.groups.at(1).name, "actor tp");
  EXPECT_EQ(record.groups.at(1).index, 1);
  EXPECT_EQ(reduced.group, 1);
  EXPECT_EQ(reduced.sequence, 1);
  EXPECT_EQ(reduced.bytes, 4096);
  EXPECT_EQ(reduced.type, DType::bf16);
  EXPECT_EQ(reduced.phase, "gen");
  EXPECT_EQ(reduced.step, 7);
  EXPECT_GE(reduced.ended_ns, reduced.begun_ns);
  EXPECT_EQ(record.last[2].state, CollectiveState::waits);
  EXPECT_EQ(record.last[2].ended_ns, 0);
  EXPECT_THAT(record.last[2].peers, ElementsAre(0));
  EXPECT_EQ(record.groups[1].begun.collectives, 1);
  EXPECT_EQ(record.groups[1].begun.exchanges, 1);
  EXPECT_EQ(record.groups[1].ended.exchanges, 0);
}

TEST_F(Flight, TheLast64StayAndTheCountersKnowAll) {
  FlightRecorder recorder;
  recorder.keep_in(run_, 3);
  const int world = recorder.add_group("world", "world", 2, 0);
  for (int i = 0; i < 1000; ++i) {
    recorder.end(recorder.begin(world, {.kind = CollectiveKind::all_reduce, .bytes = i}));
  }
  const FlightRecord record = read();
  ASSERT_EQ(record.last.size(), 64U);
  EXPECT_EQ(record.last.front().sequence, 937);
  EXPECT_EQ(record.last.back().sequence, 1000);
  EXPECT_EQ(record.groups[0].begun.collectives, 1000);
  EXPECT_EQ(record.groups[0].ended.collectives, 1000);
}

// On a device's stream: the call has returned, and a look at an event says later what has ended.
TEST_F(Flight, EnqueuedWorkHasEndedOnceSomebodyHasSeenIt) {
  FlightRecorder recorder;
  recorder.keep_in(run_, 3);
  const int world = recorder.add_group("world", "world", 2, 0);
  const CollectiveCall call{.kind = CollectiveKind::all_gather, .enqueued = true};
  recorder.begin(world, call);
  const FlightRecorder::Reached first = recorder.begun(world);
  recorder.begin(world, call);
  recorder.captured(recorder.begin(world, call));
  recorder.end_until(world, first);
  const FlightRecord record = read();
  ASSERT_EQ(record.last.size(), 3U);
  EXPECT_EQ(record.last[0].state, CollectiveState::ended);
  EXPECT_EQ(record.last[0].ended_ns, 0);
  EXPECT_EQ(record.last[1].state, CollectiveState::enqueued);
  EXPECT_EQ(record.last[2].state, CollectiveState::captured);
}

TEST_F(Flight, MoreGroupsAndPhasesThanFitAreNotNoted) {
  FlightRecorder recorder;
  recorder.keep_in(run_, 3);
  for (int i = 0; i < FlightLayout::kGroups; ++i) {
    EXPECT_EQ(recorder.add_group(std::to_string(i), "g", 2, 0), i);
  }
  const int none = recorder.add_group("one more", "g", 2, 0);
  EXPECT_EQ(none, FlightRecorder::kNoGroup);
  recorder.name_group(none, "nobody");
  recorder.end(recorder.begin(none, {}));
  for (int i = 0; i < 100; ++i) recorder.enter("phase " + std::to_string(i), i);
  EXPECT_TRUE(read().last.empty());
  EXPECT_EQ(read().damaged, 0);
}

TEST_F(Flight, AFolderThatCannotBeWrittenIsSaidAndTheRecorderStaysAsItIs) {
  std::ofstream(run_ / "file") << "";
  FlightRecorder recorder;
  const int world = recorder.add_group("world", "world", 2, 0);
  EXPECT_THROW(recorder.keep_in(run_ / "file", 3), Error);
  recorder.end(recorder.begin(world, {}));
  recorder.keep_in(run_, 3);
  EXPECT_EQ(read().last.size(), 1U);
}

TEST_F(Flight, FilesThatAreCutOrOfAnotherKindAreRefusedWithAReason) {
  EXPECT_FALSE(read_flight_record(run_, 3, reason_));
  EXPECT_THAT(reason_, HasSubstr("No such file"));
  FlightRecorder recorder;
  note_some(recorder, run_);
  fs::copy(file(), run_ / "whole");
  for (const std::uintmax_t size :
       {std::uintmax_t{0}, std::uintmax_t{100}, std::uintmax_t{sizeof(FlightLayout) - 1}}) {
    fs::remove(file());
    fs::copy(run_ / "whole", file());
    fs::resize_file(file(), size);
    EXPECT_FALSE(read_flight_record(run_, 3, reason_));
    EXPECT_THAT(reason_, HasSubstr(std::to_string(size) + " bytes"));
  }
  std::ofstream(file()) << std::string(sizeof(FlightLayout), 'x');
  EXPECT_FALSE(read_flight_record(run_, 3, reason_));
  EXPECT_THAT(reason_, HasSubstr("does not begin"));
}

// Whatever its bytes are, a record is read without harm, and all that it says can be.
TEST_F(Flight, DamagedBytesAreLeftOut) {
  FlightRecorder recorder;
  note_some(recorder, run_);
  std::ifstream in(file(), std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  std::mt19937 random(1);
  int damaged = 0;
  for (int round = 0; round < 300; ++round) {
    std::string text = whole;
    for (int i = 0; i < 1 << (round % 12); ++i) {
      text[8 + random() % (text.size() - 8)] = static_cast<char>(random());
    }
    fs::remove(file());
    std::ofstream(file(), std::ios::binary) << text;
    const FlightRecord record = read();
    damaged += record.damaged;
    for (const LastCollective& what : record.last) {
      ASSERT_LT(static_cast<std::size_t>(what.group), record.groups.size());
      ASSERT_LT(static_cast<int>(what.kind), kCollectiveKinds);
      ASSERT_FALSE(name_of(what.type).empty());
    }
  }
  EXPECT_GT(damaged, 0);
}

}  // namespace
}  // namespace tessera
