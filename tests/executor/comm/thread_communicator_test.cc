// The conformance suite on threads, and what is particular to them.
#include "executor/comm/thread_communicator.h"

#include "cost_models/documents/problem.h"
#include "tests/executor/comm/comm_conformance.h"

namespace tessera {
namespace {

template <int kRanks>
struct Threads {
  using Memory = conformance::HostMemory;
  static constexpr bool kFp32Sums = true;
  static void run(const std::function<void(Communicator&)>& fn) { run_ranks(kRanks, fn); }
};

}  // namespace

namespace conformance {
using ThreadWorlds = ::testing::Types<Threads<1>, Threads<2>, Threads<4>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Threads, CommConformance, ThreadWorlds);
}  // namespace conformance

namespace {

TEST(RunRanks, RethrowsTheFirstErrorAndWakesTheOthers) {
  int lost = -2;
  EXPECT_THROW(run_ranks(3,
                         [&](Communicator& world) {
                           if (world.rank() == 1) throw std::invalid_argument("mine");
                           try {
                             world.barrier();
                           } catch (const PeerLost& error) {
                             if (world.rank() == 2) lost = error.rank();
                             throw;
                           }
                         }),
               std::invalid_argument);
  EXPECT_EQ(lost, 1);
}

TEST(RunRanks, ARankThatEndsEarlyIsLostToThoseWhoWait) {
  EXPECT_THROW(run_ranks(2,
                         [](Communicator& world) {
                           if (world.rank() == 0) world.barrier();
                         }),
               PeerLost);
}

TEST(ThreadCommunicator, NamesTheRanksWhoseCallsDiffer) {
  try {
    run_ranks(3, [](Communicator& world) {
      float data[4] = {};
      world.all_reduce(data, world.rank() == 2 ? 3 : 4, DType::fp32, ReduceOp::sum);
    });
    FAIL() << "different counts were accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("rank 0 has all_reduce of 4 elements, rank 2"));
  }
}

TEST(ThreadCommunicator, RefusesMessagesThatDoNotMatch) {
  const auto exchange_sizes = [](std::size_t sent, std::size_t received) {
    run_ranks(2, [&](Communicator& world) {
      char data[8] = {};
      const SendBlock send{1, data, sent};
      const ReceiveBlock receive{0, data, received};
      if (world.rank() == 0) world.exchange({&send, 1}, {});
      if (world.rank() == 1) {
        world.exchange({}, {&receive, received == 0 ? 0u : 1u});
      }
    });
  };
  EXPECT_NO_THROW(exchange_sizes(4, 4));
  EXPECT_THROW(exchange_sizes(4, 5), Error);
  EXPECT_THROW(exchange_sizes(4, 0), Error);
}

}  // namespace
}  // namespace tessera
