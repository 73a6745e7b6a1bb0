// The contract of every Communicator, as one typed test suite over a backend (comm_fixture.h).
//
// Cases work for worlds of one rank and more.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "tests/executor/comm/comm_fixture.h"

namespace tessera::conformance {

inline constexpr std::size_t kCounts[] = {0, 1, 3, 257, 5000, 40009};

TYPED_TEST_SUITE_P(CommConformance);

TYPED_TEST_P(CommConformance, AllReduceSumsAndTakesTheMaximumOfEveryType) {
  TypeParam::run([](Communicator& world) {
    for (const DType type : kAllTypes) {
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
        for (const std::size_t count : kCounts) {
          typename TestFixture::Buffer data(encode(TestFixture::values(world.rank(), count), type));
          world.all_reduce(data.data(), count, type, op);
          EXPECT_EQ(data.read(), encode(TestFixture::reduced(world.size(), count, op), type))
              << name_of(type) << " x " << count;
        }
      }
    }
  });
}

TYPED_TEST_P(CommConformance, NegativeMaximaKeepTheirSign) {
  TypeParam::run([](Communicator& world) {
    for (const DType type : {DType::fp32, DType::bf16, DType::fp16, DType::int64, DType::int32}) {
      typename TestFixture::Buffer data(encode({-3 - world.rank(), world.rank() - 9}, type));
      world.all_reduce(data.data(), 2, type, ReduceOp::max);
      EXPECT_EQ(data.read(), encode({-3, world.size() - 10}, type)) << name_of(type);
    }
  });
}

TYPED_TEST_P(CommConformance, SumsHaveTheSameBitsOnEveryMemberAndInEveryRun) {
  TypeParam::run([](Communicator& world) {
    constexpr std::size_t kCount = 20011;
    const auto numbers = [](int rank) {
      std::mt19937 random(static_cast<unsigned>(rank) + 1);
      std::vector<float> made(kCount);
      for (float& x : made) {
        x = std::ldexp(static_cast<float>(random()) * 1e-9f - 2.f, static_cast<int>(random() % 20));
      }
      return made;
    };
    const auto bytes_of = [](const std::vector<float>& x) {
      Bytes bytes(x.size() * 4);
      std::memcpy(bytes.data(), x.data(), bytes.size());
      return bytes;
    };
    Bytes first;
    for (int run = 0; run < 3; ++run) {
      typename TestFixture::Buffer data(bytes_of(numbers(world.rank())));
      typename TestFixture::Buffer all(TestFixture::bytes(world.size(), kCount * 4));
      world.all_reduce(data.data(), kCount, DType::fp32, ReduceOp::sum);
      world.all_gather(data.data(), all.data(), kCount, DType::fp32);
      const Bytes mine = data.read(), everybody = all.read();
      for (int r = 0; r < world.size(); ++r) {
        EXPECT_TRUE(std::equal(mine.begin(), mine.end(),
                               everybody.begin() + static_cast<std::ptrdiff_t>(kCount * 4) * r));
      }
      if (run == 0) first = mine;
      EXPECT_EQ(mine, first);
    }
    if constexpr (TypeParam::kFp32Sums) {
      std::vector<float> expected = numbers(0);
      for (int r = 1; r < world.size(); ++r) {
        const std::vector<float> next = numbers(r);
        for (std::size_t i = 0; i < kCount; ++i) expected[i] += next[i];
      }
      EXPECT_EQ(first, bytes_of(expected));
    }
  });
}

/// 1 + 2^-9 + 2^-9 + ...: every partial sum in bf16 rounds to 1; in fp32 all are kept.
TYPED_TEST_P(CommConformance, SixteenBitSumsAccumulateInFp32) {
  if constexpr (!TypeParam::kFp32Sums) {
    GTEST_SKIP() << "this backend rounds partial sums to the type";
  } else {
    TypeParam::run([](Communicator& world) {
      const float mine = world.rank() == 0 ? 1.f : std::ldexp(1.f, -9);
      std::vector<std::uint16_t> block(TestFixture::index(world.size()), bf16_of(mine));
      const std::uint16_t expected =
          bf16_of(1.f + static_cast<float>(world.size() - 1) * std::ldexp(1.f, -9));
      std::uint16_t scattered = 0;
      world.reduce_scatter(block.data(), &scattered, 1, DType::bf16, ReduceOp::sum);
      EXPECT_EQ(scattered, expected);
      world.all_reduce(block.data(), 1, DType::bf16, ReduceOp::sum);
      EXPECT_EQ(block[0], expected);
      // fp16: 2048 + 1 + 1 + 1 = 2051 rounds to 2052; step by step it stays at 2048.
      std::uint16_t half = fp16_of(world.rank() == 0 ? 2048 : 1);
      world.all_reduce(&half, 1, DType::fp16, ReduceOp::sum);
      if (world.size() == 4) {
        EXPECT_EQ(half, fp16_of(2052));
      }
    });
  }
}

TYPED_TEST_P(CommConformance, AllGatherCollectsBlocksInRankOrder) {
  TypeParam::run([](Communicator& world) {
    for (const DType type : kAllTypes) {
      for (const std::size_t count : kCounts) {
        std::vector<int> expected;
        for (int r = 0; r < world.size(); ++r) {
          const std::vector<int> block = TestFixture::values(r, count);
          expected.insert(expected.end(), block.begin(), block.end());
        }
        const Bytes mine = encode(TestFixture::values(world.rank(), count), type);
        typename TestFixture::Buffer send(mine),
            receive(mine.size() * TestFixture::index(world.size()));
        world.all_gather(send.data(), receive.data(), count, type);
        EXPECT_EQ(receive.read(), encode(expected, type));
        // In place: the rank's own block is already where it belongs.
        Bytes whole(mine.size() * TestFixture::index(world.size()), 0xee);
        std::copy(mine.begin(), mine.end(),
                  whole.begin() + static_cast<std::ptrdiff_t>(mine.size()) * world.rank());
        typename TestFixture::Buffer in_place(whole);
        world.all_gather(in_place.at(mine.size() * TestFixture::index(world.rank())),
                         in_place.data(), count, type);
        EXPECT_EQ(in_place.read(), encode(expected, type));
      }
    }
  });
}

TYPED_TEST_P(CommConformance, ReduceScatterGivesEachRankItsBlock) {
  TypeParam::run([](Communicator& world) {
    const std::size_t ranks = TestFixture::index(world.size()),
                      me = TestFixture::index(world.rank());
    for (const DType type : kAllTypes) {
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
        for (const std::size_t count : kCounts) {
          typename TestFixture::Buffer send(
              encode(TestFixture::values(world.rank(), count * ranks), type));
          typename TestFixture::Buffer receive(count * static_cast<std::size_t>(size_of(type)));
          world.reduce_scatter(send.data(), receive.data(), count, type, op);
          EXPECT_EQ(receive.read(),
                    encode(TestFixture::reduced(world.size(), count, op, count * me), type));
        }
      }
    }
  });
}

TYPED_TEST_P(CommConformance, BroadcastCopiesFromEveryRoot) {
  TypeParam::run([](Communicator& world) {
    for (const DType type : kAllTypes) {
      for (const std::size_t count : kCounts) {
        for (int root = 0; root < world.size(); ++root) {
          typename TestFixture::Buffer data(encode(TestFixture::values(world.rank(), count), type));
          world.broadcast(data.data(), count, type, root);
          EXPECT_EQ(data.read(), encode(TestFixture::values(root, count), type));
        }
      }
    }
  });
}

TYPED_TEST_P(CommConformance, AllToAllTransposesBlocks) {
  TypeParam::run([](Communicator& world) {
    const std::size_t ranks = TestFixture::index(world.size()),
                      me = TestFixture::index(world.rank());
    for (const DType type : kAllTypes) {
      for (const std::size_t count : kCounts) {
        typename TestFixture::Buffer send(
            encode(TestFixture::values(world.rank(), count * ranks), type));
        typename TestFixture::Buffer receive(count * ranks *
                                             static_cast<std::size_t>(size_of(type)));
        world.all_to_all(send.data(), receive.data(), count, type);
        std::vector<int> expected;
        for (int r = 0; r < world.size(); ++r) {
          const std::vector<int> block = TestFixture::values(r, count, count * me);
          expected.insert(expected.end(), block.begin(), block.end());
        }
        EXPECT_EQ(receive.read(), encode(expected, type));
      }
    }
  });
}

/// A traffic pattern that every rank knows: messages (from, to, bytes) in posting order.
struct Message {
  int from = 0, to = 0;
  std::size_t bytes = 0;
  std::uint8_t fill = 0;
};

/// Runs a pattern with one buffer per message and compares what arrived.
template <class Fixture>
void expect_exchanged(Communicator& world, const std::vector<Message>& pattern) {
  using Buffer = typename Fixture::Buffer;
  std::vector<Buffer> sent, received;
  std::vector<SendBlock> sends;
  std::vector<ReceiveBlock> receives;
  std::vector<Message> expected;
  for (const Message& message : pattern) {
    if (message.from == world.rank()) {
      sent.emplace_back(Bytes(message.bytes, message.fill));
      sends.push_back({message.to, sent.back().data(), message.bytes});
    }
    if (message.to == world.rank()) {
      received.emplace_back(Bytes(message.bytes, 0));
      receives.push_back({message.from, received.back().data(), message.bytes});
      expected.push_back(message);
    }
  }
  world.exchange(sends, receives);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(received[i].read(), Bytes(expected[i].bytes, expected[i].fill)) << "message " << i;
  }
}

TYPED_TEST_P(CommConformance, ExchangeDeliversEveryMessageInOrderPerPair) {
  TypeParam::run([](Communicator& world) {
    std::mt19937 random(7);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
    const std::size_t ranks = TestFixture::index(world.size());
    constexpr std::size_t kSizes[] = {0, 1, 2, 100, 4096, 70001};
    for (int round = 0; round < 10; ++round) {
      std::vector<Message> pattern(below(200));  // many per pair, self messages, zero sizes
      for (Message& message : pattern) {
        message = {static_cast<int>(below(ranks)), static_cast<int>(below(ranks)),
                   kSizes[below(std::size(kSizes))], static_cast<std::uint8_t>(1 + below(255))};
      }
      expect_exchanged<TestFixture>(world, pattern);
    }
    expect_exchanged<TestFixture>(world, {});
  });
}

TYPED_TEST_P(CommConformance, ExchangeOfLargeMessagesBothWaysDoesNotDeadlock) {
  TypeParam::run([](Communicator& world) {
    std::vector<Message> pattern;
    for (int from = 0; from < world.size(); ++from) {
      for (int to = 0; to < world.size(); ++to) {
        pattern.push_back({from, to, 3'000'001, static_cast<std::uint8_t>(from * 16 + to + 1)});
      }
    }
    expect_exchanged<TestFixture>(world, pattern);
  });
}

TYPED_TEST_P(CommConformance, BarrierHoldsEverybodyUntilTheLastArrives) {
  TypeParam::run([](Communicator& world) {
    const auto now = [] {
      return static_cast<std::int64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    };
    std::this_thread::sleep_for(std::chrono::milliseconds(10 * (world.size() - world.rank())));
    std::int64_t times[2] = {now(), 0};
    world.barrier();
    times[1] = now();
    Bytes bytes(16);
    std::memcpy(bytes.data(), times, 16);
    typename TestFixture::Buffer send(bytes), all(TestFixture::bytes(world.size(), 16));
    world.all_gather(send.data(), all.data(), 2, DType::int64);
    const Bytes gathered = all.read();
    for (int r = 0; r < world.size(); ++r) {
      std::int64_t theirs[2];
      std::memcpy(theirs, gathered.data() + std::ptrdiff_t{16} * r, 16);
      EXPECT_LE(theirs[0], times[1]) << "rank " << r << " had not arrived";
    }
  });
}

TYPED_TEST_P(CommConformance, SplitGroupsHaveTheListedOrder) {
  TypeParam::run([](Communicator& world) {
    std::vector<int> reversed = TestFixture::first_ranks(std::max(1, world.size() - 1));
    std::reverse(reversed.begin(), reversed.end());
    const std::unique_ptr<Communicator> group = world.split(reversed);
    const bool listed = world.size() == 1 || world.rank() + 1 < world.size();
    ASSERT_EQ(group != nullptr, listed);
    if (!group) return;
    EXPECT_EQ(group->size(), static_cast<int>(reversed.size()));
    EXPECT_EQ(reversed[TestFixture::index(group->rank())], world.rank());
    typename TestFixture::Buffer send(encode({world.rank()}, DType::int32));
    typename TestFixture::Buffer all(reversed.size() * 4);
    group->all_gather(send.data(), all.data(), 1, DType::int32);
    EXPECT_EQ(all.read(), encode(reversed, DType::int32));
  });
}

TYPED_TEST_P(CommConformance, DisjointGroupsAreMadeByOneSplitAndSplitAgain) {
  TypeParam::run([](Communicator& world) {
    std::vector<int> mine;
    for (int r = world.rank() % 2; r < world.size(); r += 2) mine.push_back(r);
    const std::unique_ptr<Communicator> half = world.split(mine);
    ASSERT_NE(half, nullptr);
    typename TestFixture::Buffer data(encode({1 + world.rank()}, DType::int32));
    half->all_reduce(data.data(), 1, DType::int32, ReduceOp::sum);
    int expected = 0;
    for (const int r : mine) expected += 1 + r;
    EXPECT_EQ(data.read(), encode({expected}, DType::int32));

    const int last[] = {half->size() - 1};
    const std::unique_ptr<Communicator> single = half->split(last);
    EXPECT_EQ(single != nullptr, half->rank() == last[0]);
    if (single) {
      single->all_reduce(data.data(), 1, DType::int32, ReduceOp::sum);
      EXPECT_EQ(data.read(), encode({expected}, DType::int32));
    }
    EXPECT_EQ(world.split({}), nullptr);
  });
}

TYPED_TEST_P(CommConformance, AbortEndsPendingAndLaterOperationsOfItsGroupOnly) {
  TypeParam::run([](Communicator& world) {
    const std::unique_ptr<Communicator> group = world.split(TestFixture::first_ranks(world.size()));
    typename TestFixture::Buffer data(encode({1}, DType::int32));
    if (world.rank() == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));  // the others wait by now
      group->abort();
    } else {
      EXPECT_THROW(
          {
            group->all_reduce(data.data(), 1, DType::int32, ReduceOp::sum);
            group->barrier();  // device operations return at once; the barrier waits for them
          },
          PeerLost);
    }
    EXPECT_THROW(group->barrier(), PeerLost);
    EXPECT_THROW(group->all_reduce(data.data(), 1, DType::int32, ReduceOp::sum), PeerLost);
    typename TestFixture::Buffer ones(encode({1}, DType::int32));
    world.all_reduce(ones.data(), 1, DType::int32, ReduceOp::sum);
    EXPECT_EQ(ones.read(), encode({world.size()}, DType::int32));
  });
}

REGISTER_TYPED_TEST_SUITE_P(CommConformance, AllReduceSumsAndTakesTheMaximumOfEveryType,
                            NegativeMaximaKeepTheirSign,
                            SumsHaveTheSameBitsOnEveryMemberAndInEveryRun,
                            SixteenBitSumsAccumulateInFp32, AllGatherCollectsBlocksInRankOrder,
                            ReduceScatterGivesEachRankItsBlock, BroadcastCopiesFromEveryRoot,
                            AllToAllTransposesBlocks, ExchangeDeliversEveryMessageInOrderPerPair,
                            ExchangeOfLargeMessagesBothWaysDoesNotDeadlock,
                            BarrierHoldsEverybodyUntilTheLastArrives, SplitGroupsHaveTheListedOrder,
                            DisjointGroupsAreMadeByOneSplitAndSplitAgain,
                            AbortEndsPendingAndLaterOperationsOfItsGroupOnly);

}  // namespace tessera::conformance
