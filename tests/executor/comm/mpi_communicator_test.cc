// The conformance suite over MPI, one process per rank; runs under mpirun.
#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>

#include "executor/comm/mpi_world.h"
#include "tests/executor/comm/comm_conformance.h"

namespace tessera {
namespace {

Communicator* mpi_world = nullptr;

struct Mpi {
  using Memory = conformance::HostMemory;
  static constexpr bool kFp32Sums = true;
  static void run(const std::function<void(Communicator&)>& fn) { fn(*mpi_world); }
};

}  // namespace

namespace conformance {
INSTANTIATE_TYPED_TEST_SUITE_P(Mpi, CommConformance, Mpi);
}  // namespace conformance

namespace {

/// Seconds per call of `fn` on this rank.
double seconds_per_call(int calls, const std::function<void()>& fn) {
  mpi_world->barrier();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) fn();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / calls;
}

TEST(MpiCommunicator, RunsSmallAndLargeReductionsAtAUsableRate) {
  std::vector<float> data(std::size_t{4} << 20, 0.f);
  const double small = seconds_per_call(
      500, [&] { mpi_world->all_reduce(data.data(), 512, DType::fp32, ReduceOp::sum); });
  const double large = seconds_per_call(
      3, [&] { mpi_world->all_reduce(data.data(), data.size(), DType::fp32, ReduceOp::sum); });
  if (mpi_world->rank() == 0) {
    std::printf("%d ranks: all_reduce 2 KiB %.1f us, 16 MiB %.2f ms (%.2f GB/s)\n",
                mpi_world->size(), small * 1e6, large * 1e3, 16.78e6 / large / 1e9);
  }
  EXPECT_LT(small, 20e-3);  // a hang or a nap in every call, not a slow machine
}

/// Prints failures only: one rank reports the progress.
class FailurePrinter : public ::testing::EmptyTestEventListener {
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (result.failed()) {
      std::cerr << "rank " << mpi_world->rank() << ": " << result.file_name() << ":"
                << result.line_number() << ": " << result.message() << std::endl;
    }
  }
};

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  // Reports are configured by InitGoogleTest: one rank writes them, or all would write one file.
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (rank != nullptr && std::string(rank) != "0") ::testing::GTEST_FLAG(output) = "";
  ::testing::InitGoogleTest(&argc, argv);
  // Small pieces: every larger message of the suite is cut.
  const auto world = tessera::open_mpi_world({.piece_bytes = 65536 + 1, .timeout_s = 30});
  tessera::mpi_world = world.get();
  if (world->rank() != 0) {
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new tessera::FailurePrinter);
  }
  return RUN_ALL_TESTS();
}
