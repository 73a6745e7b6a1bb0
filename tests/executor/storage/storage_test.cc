#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "executor/comm/thread_communicator.h"
#include "executor/storage/background_memory.h"
#include "executor/storage/host_signals.h"
#include "executor/storage/peer_blocks.h"
#include "executor/storage/releasable_memory.h"

namespace tessera {
namespace {

TEST(PeerBlocks, EveryRankReadsWhatEveryOtherWrites) {
  run_ranks(5, [](Communicator& world) {
    // Unequal sizes; rank 3 brings none.
    const std::int64_t bytes = std::int64_t{5000} * (world.rank() + 1);
    const auto block = world.rank() == 3 ? nullptr : make_host_block(bytes);
    const PeerBlocks peers(world, block.get());
    EXPECT_TRUE(peers.all_on_one_host());
    if (block) std::memset(block->data(), world.rank() + 1, static_cast<std::size_t>(bytes));
    world.barrier();
    for (int r = 0; r < world.size() && block; ++r) {
      if (r == 3) {
        EXPECT_EQ(peers.at(r), nullptr);
        continue;
      }
      EXPECT_EQ(peers.at(r)[0], static_cast<std::byte>(r + 1));
      EXPECT_EQ(peers.at(r)[5000 * (r + 1) - 1], static_cast<std::byte>(r + 1));
    }
    world.barrier();
  });
}

TEST(PeerBlocks, AMappingOutlivesTheOwnersBlock) {
  run_ranks(2, [](Communicator& world) {
    auto block = make_host_block(100);
    *static_cast<int*>(block->data()) = 40 + world.rank();
    const PeerBlocks peers(world, block.get());
    if (world.rank() == 0) block.reset();
    world.barrier();
    if (world.rank() == 1) {
      EXPECT_EQ(*reinterpret_cast<const int*>(peers.at(0)), 40);
    }
    world.barrier();
  });
}

TEST(SharedBlock, StartsZeroFilled) {
  const auto block = make_host_block(1 << 20);
  EXPECT_EQ(block->bytes(), 1 << 20);
  for (int i = 0; i < 1 << 20; ++i) ASSERT_EQ(static_cast<const char*>(block->data())[i], 0);
}

TEST(SharedBlock, IsFoundAgainByItsMemoryAlone) {
  run_ranks(3, [](Communicator& world) {
    const auto owner = make_host_block(70'000), other = make_host_block(70'000);
    const auto again = share_host_memory(owner->data(), owner->bytes());
    ASSERT_NE(again, nullptr);
    EXPECT_EQ(again->data(), owner->data());
    const PeerBlocks peers(world, again.get());
    static_cast<int*>(owner->data())[17'000] = 100 + world.rank();
    static_cast<int*>(other->data())[17'000] = -1;
    world.barrier();
    for (int r = 0; r < world.size(); ++r) {
      EXPECT_EQ(reinterpret_cast<const int*>(peers.at(r))[17'000], 100 + r);
    }
    world.barrier();
  });
}

TEST(SharedBlock, OrdinaryMemoryIsNone) {
  std::vector<char> ordinary(1 << 20);
  EXPECT_EQ(share_host_memory(ordinary.data(), 1 << 20), nullptr);
  const auto block = make_host_block(1 << 20);
  EXPECT_EQ(share_host_memory(static_cast<char*>(block->data()) + 4096, 4096), nullptr);
}

std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

TEST(ReleasableMemory, GivesItsPagesBackWhileItsAddressesStay) {
  constexpr std::int64_t kBytes = std::int64_t{64} << 20;
  const auto memory = make_releasable_host_memory(kBytes);
  void* const address = memory->data();
  const std::int64_t before = resident_bytes();
  for (int turn = 1; turn <= 3; ++turn) {
    std::memset(memory->data(), turn, static_cast<std::size_t>(kBytes));
    EXPECT_GT(resident_bytes(), before + kBytes * 9 / 10);
    EXPECT_EQ(static_cast<const char*>(memory->data())[kBytes - 1], turn);
    memory->release();
    EXPECT_FALSE(memory->mapped());
    EXPECT_LT(resident_bytes(), before + kBytes / 10);
    memory->release();  // twice is once
    memory->map();
    EXPECT_TRUE(memory->mapped());
    EXPECT_EQ(memory->data(), address);
    EXPECT_LT(resident_bytes(), before + kBytes / 10) << "pages come as they are touched";
  }
}

TEST(ReleasableMemory, CannotBeReadWhileItIsReleased) {
  const auto memory = make_releasable_host_memory(1 << 16);
  memory->release();
  int pipes[2] = {};
  ASSERT_EQ(pipe(pipes), 0);
  EXPECT_EQ(write(pipes[1], memory->data(), 16), -1);  // EFAULT, not stale weights
  memory->map();
  EXPECT_EQ(write(pipes[1], memory->data(), 16), 16);
  close(pipes[0]);
  close(pipes[1]);
}

TEST(HostSignals, ABarrierLetsNobodyThroughEarly) {
  run_ranks(4, [](Communicator& world) {
    HostSignals signals(world);
    const auto block = make_host_block(8);
    const PeerBlocks peers(world, block.get());
    auto* mine = static_cast<int*>(block->data());
    for (int turn = 1; turn <= 200; ++turn) {
      *mine = turn;
      signals.barrier();
      for (int r = 0; r < 4; ++r) EXPECT_EQ(*reinterpret_cast<int*>(peers.at(r)), turn);
      signals.barrier();
    }
  });
}

TEST(HostSignals, ARankThatDoesNotComeIsNamed) {
  run_ranks(3, [](Communicator& world) {
    HostSignals signals(world, 0.05);
    if (world.rank() == 1) return world.barrier();
    try {
      signals.barrier();
      ADD_FAILURE() << "passed without rank 1";
    } catch (const PeerLost& lost) {
      EXPECT_EQ(lost.rank(), 1);
    }
    world.barrier();
  });
}

TEST(HostSignals, ARankThatGivesUpEndsTheWaitOfOthers) {
  run_ranks(2, [](Communicator& world) {
    HostSignals signals(world, 60);
    if (world.rank() == 0) {
      signals.abort();
    } else {
      EXPECT_THROW(signals.await(0, 2, 1), PeerLost);
    }
    world.barrier();
  });
}

TEST(BackgroundMemory, IsThereFromEndToEnd) {
  constexpr std::int64_t kBytes = (std::int64_t{130} << 20) + 12345;
  const BackgroundMemory memory(kBytes);
  auto* const data = static_cast<unsigned char*>(memory.data());
  EXPECT_EQ(memory.bytes(), kBytes);
  std::vector<unsigned char> there(kBytes / 4096 + 2);
  ASSERT_EQ(::mincore(data, kBytes, there.data()), 0) << std::strerror(errno);
  for (std::int64_t page = 0; page * 4096 < kBytes; ++page) ASSERT_TRUE(there[page] & 1) << page;
  data[0] = data[kBytes - 1] = 7;
}

TEST(BackgroundMemory, MayBeGivenUpWhileItIsMade) {
  for (int i = 0; i < 20; ++i) BackgroundMemory memory(std::int64_t{256} << 20);
}

}  // namespace
}  // namespace tessera
