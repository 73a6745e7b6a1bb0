// Reshards on ranks that are processes; runs under mpirun.
#include "executor/comm/mpi_world.h"
#include "tests/executor/reshard/reshard_cases.h"

namespace tessera {
namespace {

Communicator* mpi_world = nullptr;

TEST(WeightReshardOverMpi, DeliversEveryPairOfLayoutsThroughSharedMemory) {
  reshard_cases::delivers_every_pair(*mpi_world, {.transport = ReshardTransport::host});
}

TEST(WeightReshardOverMpi, DeliversEveryPairOfLayoutsByMessages) {
  reshard_cases::delivers_every_pair(*mpi_world, {.transport = ReshardTransport::send_recv});
}

TEST(WeightReshardOverMpi, DeliversEveryPairOfLayoutsInStepsOfOnePeerAtATime) {
  reshard_cases::delivers_every_pair(
      *mpi_world, {.transport = ReshardTransport::host, .pulls = PullOrder::in_steps});
}

TEST(WeightReshardOverMpi, OverlapsWithTheOptimizerWithoutStaleWeights) {
  reshard_cases::overlaps_without_stale_weights(*mpi_world);
}

TEST(WeightReshardOverMpi, MovesOnlyWhatChanged) {
  reshard_cases::moves_only_what_changed(*mpi_world, ReshardTransport::host);
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  // Reports are configured by InitGoogleTest: one rank writes them, or all would write one file.
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (rank != nullptr && std::string(rank) != "0") ::testing::GTEST_FLAG(output) = "";
  ::testing::InitGoogleTest(&argc, argv);
  const auto world = tessera::open_mpi_world({.timeout_s = 60});
  tessera::mpi_world = world.get();
  if (world->rank() != 0) {
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
  }
  return RUN_ALL_TESTS();
}
