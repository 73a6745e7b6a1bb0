// A recorded world is a communicator like any other, and its record says what its ranks have
// called.
#include "executor/comm/recorded_communicator.h"

#include <gmock/gmock.h>

#include <array>
#include <mutex>

#include "executor/comm/comm_times.h"
#include "executor/comm/group_name.h"
#include "executor/comm/thread_communicator.h"
#include "simulator/flight_recorder/flight_record.h"
#include "tests/executor/comm/comm_conformance.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// Passes on what does not belong to it: the worlds of threads belong to their threads.
class Borrowed final : public Communicator {
 public:
  explicit Borrowed(Communicator& inner) : inner_(inner) {}
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void all_reduce(void* data, std::size_t count, DType type, ReduceOp op) override {
    inner_.all_reduce(data, count, type, op);
  }
  void all_gather(const void* send, void* receive, std::size_t count, DType type) override {
    inner_.all_gather(send, receive, count, type);
  }
  void reduce_scatter(const void* send, void* receive, std::size_t count, DType type,
                      ReduceOp op) override {
    inner_.reduce_scatter(send, receive, count, type, op);
  }
  void broadcast(void* data, std::size_t count, DType type, int root) override {
    inner_.broadcast(data, count, type, root);
  }
  void all_to_all(const void* send, void* receive, std::size_t count, DType type) override {
    inner_.all_to_all(send, receive, count, type);
  }
  void exchange(std::span<const SendBlock> sends, std::span<const ReceiveBlock> receives) override {
    inner_.exchange(sends, receives);
  }
  void barrier() override { inner_.barrier(); }
  void abort() override { inner_.abort(); }
  std::unique_ptr<Communicator> split(std::span<const int> members) override {
    return inner_.split(members);
  }

 private:
  Communicator& inner_;
};

template <int kRanks>
struct RecordedThreads {
  using Memory = conformance::HostMemory;
  static constexpr bool kFp32Sums = true;
  static void run(const std::function<void(Communicator&)>& fn) {
    run_ranks(kRanks, [&](Communicator& world) {
      FlightRecorder recorder;
      fn(*recorded(std::make_unique<Borrowed>(world), recorder));
    });
  }
};

}  // namespace

namespace conformance {
using RecordedWorlds = ::testing::Types<RecordedThreads<1>, RecordedThreads<4>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Recorded, CommConformance, RecordedWorlds);
}  // namespace conformance

namespace {

/// What every rank of a world of four has noted of `fn`.
std::vector<FlightRecord> records_of(const std::function<void(Communicator&)>& fn) {
  std::string pattern = fs::temp_directory_path() / "tessera-recorded-XXXXXX";
  EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
  run_ranks(4, [&](Communicator& world) {
    FlightRecorder recorder;
    recorder.keep_in(pattern, world.rank());
    const auto own = recorded(std::make_unique<Borrowed>(world), recorder);
    try {
      fn(*own);
    } catch (const PeerLost&) {
    }
  });
  std::vector<FlightRecord> records;
  for (int rank = 0; rank < 4; ++rank) {
    std::string reason;
    auto record = read_flight_record(pattern, rank, reason);
    EXPECT_TRUE(record) << reason;
    if (record) records.push_back(*std::move(record));
  }
  fs::remove_all(pattern);
  return records;
}

TEST(Recorded, GroupsOfEqualMembersHaveEqualIdsAndTheirOwnNames) {
  const std::vector<FlightRecord> records = records_of([](Communicator& world) {
    const int first = world.rank() / 2 * 2;
    const std::array pair{first, first + 1};
    const auto group = world.split(pair), again = world.split(pair);
    name_group(*group, "actor tp");
    CommTimes times(world.rank());
    const auto timed = times.timed(group->split(std::array{0, 1}), "tp");
    name_group(*timed, "through the clock");
    std::int32_t value = 1;
    timed->all_reduce(&value, 1, DType::int32, ReduceOp::sum);
  });
  ASSERT_EQ(records.size(), 4U);
  for (const FlightRecord& record : records) {
    ASSERT_EQ(record.groups.size(), 4U);
    EXPECT_EQ(record.groups[1].name, "actor tp");
    EXPECT_EQ(record.groups[2].name, "world/1");
    EXPECT_EQ(record.groups[3].name, "through the clock");
    EXPECT_EQ(record.groups[1].index, record.rank % 2);
    EXPECT_NE(record.groups[1].id, record.groups[2].id);
    EXPECT_EQ(record.last.back().group, 3);
  }
  EXPECT_EQ(records[0].groups[1].id, records[1].groups[1].id);
  EXPECT_NE(records[0].groups[1].id, records[2].groups[1].id);
}

TEST(Recorded, EveryOperationIsNotedWithItsSize) {
  const std::vector<FlightRecord> records = records_of([](Communicator& world) {
    std::array<std::int32_t, 16> data{}, other{};
    world.all_reduce(data.data(), 2, DType::int32, ReduceOp::sum);
    world.all_gather(data.data(), other.data(), 2, DType::int32);
    world.reduce_scatter(other.data(), data.data(), 3, DType::int32, ReduceOp::sum);
    world.broadcast(data.data(), 5, DType::uint8, 2);
    world.all_to_all(data.data(), other.data(), 1, DType::int32);
    const int peer = world.rank() ^ 1;
    const SendBlock send{peer, data.data(), 12};
    const ReceiveBlock receive{peer, other.data(), 12};
    world.exchange(std::span(&send, 1), std::span(&receive, 1));
    world.barrier();
  });
  for (const FlightRecord& record : records) {
    ASSERT_EQ(record.last.size(), 7U);
    const std::array<std::int64_t, 7> bytes{8, 32, 48, 5, 16, 12, 0};
    for (std::size_t i = 0; i < 7; ++i) {
      EXPECT_EQ(record.last[i].bytes, bytes[i]) << i;
      EXPECT_EQ(record.last[i].state, CollectiveState::ended);
    }
    EXPECT_EQ(record.last[3].root, 2);
    EXPECT_EQ(record.last[3].kind, CollectiveKind::broadcast);
    EXPECT_EQ(record.last[5].peers, std::vector<int>{record.rank ^ 1});
    EXPECT_EQ(record.last[5].sequence, 1) << "exchanges are counted apart";
    EXPECT_EQ(record.last[6].sequence, 6);
  }
}

TEST(Recorded, WhatAPeerHasLeftDidNotEnd) {
  const std::vector<FlightRecord> records = records_of([](Communicator& world) {
    world.barrier();
    if (world.rank() != 2) world.barrier();
  });
  for (const FlightRecord& record : records) {
    ASSERT_EQ(record.last.size(), record.rank == 2 ? 1U : 2U);
    EXPECT_EQ(record.last.back().state,
              record.rank == 2 ? CollectiveState::ended : CollectiveState::waits);
  }
}

}  // namespace
}  // namespace tessera
