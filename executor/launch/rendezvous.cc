#include "executor/launch/rendezvous.h"

#include <chrono>
#include <cstring>
#include <string>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "cost_models/documents/problem.h"
#include "executor/comm/mpi_world.h"
#include "executor/comm/recorded_communicator.h"
#include "executor/comm/thread_communicator.h"

namespace tessera {
namespace {

using StorePointer = c10::intrusive_ptr<c10d::Store>;

[[noreturn]] void refuse_token(int rank) {
  throw Error(ExitCode::bad_input, "rank " + std::to_string(rank) +
                                       " was started with another plan or configuration than "
                                       "rank 0");
}

std::unique_ptr<Communicator> join_mpi(const LaunchEnvironment& launch,
                                       const WorldOptions& options) {
  std::unique_ptr<Communicator> world =
      open_mpi_world({.waiting = options.waiting, .timeout_s = options.timeout_s});
  if (world->rank() != launch.rank || world->size() != launch.world_size) {
    throw Error(ExitCode::missing,
                "MPI sees rank " + std::to_string(world->rank()) + " of " +
                    std::to_string(world->size()) + ", " + std::string(name_of(launch.launcher)) +
                    " says " + std::to_string(launch.rank) + " of " +
                    std::to_string(launch.world_size) +
                    ": ranks on CPUs are started by mpirun (or srun --mpi=pmix)");
  }
  std::int64_t mine = static_cast<std::int64_t>(options.token), first = mine;
  world->broadcast(&first, 1, DType::int64, 0);
  if (first != mine) refuse_token(launch.rank);
  return world;
}

StorePointer open_store(const LaunchEnvironment& launch, const WorldOptions& options) {
  c10d::TCPStoreOptions store;
  store.port = static_cast<std::uint16_t>(launch.master_port);
  store.isServer = launch.rank == 0 && !launch.agent_hosts_store;
  store.waitWorkers = false;
  store.timeout =
      std::chrono::milliseconds(static_cast<std::int64_t>(options.join_timeout_s * 1e3));
  try {
    return c10::make_intrusive<c10d::TCPStore>(launch.master_host, store);
  } catch (const std::exception& error) {
    throw PeerLost(0, "no store at " + launch.master_host + ":" +
                          std::to_string(launch.master_port) + ": " + error.what());
  }
}

std::vector<std::uint8_t> bytes_of(const void* data, std::size_t bytes) {
  const auto* begin = static_cast<const std::uint8_t*>(data);
  return {begin, begin + bytes};
}

/// Abort notices as keys of the store. The store may be gone when a run ends: that says nothing.
class StoreBoard final : public AbortBoard {
 public:
  StoreBoard(StorePointer store, std::string prefix)
      : store_(std::move(store)), prefix_(std::move(prefix)) {}

  void post(const std::string& group, int rank) override {
    try {
      store_->set(prefix_ + group, bytes_of(&rank, sizeof(rank)));
    } catch (const std::exception&) {
    }
  }
  std::optional<int> look(const std::string& group) override {
    try {
      if (!store_->check({prefix_ + group})) return std::nullopt;
      const std::vector<std::uint8_t> value = store_->get(prefix_ + group);
      int rank = -1;
      if (value.size() == sizeof(rank)) std::memcpy(&rank, value.data(), sizeof(rank));
      return rank;
    } catch (const std::exception&) {
      return std::nullopt;
    }
  }

 private:
  StorePointer store_;
  std::string prefix_;
};

/// NCCL's id of this run: made by rank 0, compared by token.
NcclId share_id(c10d::Store& store, const std::string& prefix, const LaunchEnvironment& launch,
                std::uint64_t token) {
  struct Card {
    std::uint64_t token;
    NcclId id;
  } card{token, {}};
  if (launch.rank == 0) {
    card.id = make_nccl_id();
    store.set(prefix + "id", bytes_of(&card, sizeof(card)));
    return card.id;
  }
  std::vector<std::uint8_t> value;
  try {
    value = store.get(prefix + "id");  // waits for rank 0, up to the store's timeout
  } catch (const std::exception& error) {
    throw PeerLost(0, std::string("rank 0 did not come: ") + error.what());
  }
  if (value.size() != sizeof(card)) refuse_token(launch.rank);
  std::memcpy(&card, value.data(), sizeof(card));
  if (card.token != token) refuse_token(launch.rank);
  return card.id;
}

NcclId share_id_by_mpi(const LaunchEnvironment& launch, const WorldOptions& options) {
  const std::unique_ptr<Communicator> world = join_mpi(launch, options);
  NcclId id{};
  if (launch.rank == 0) id = make_nccl_id();
  world->broadcast(id.data(), id.size(), DType::uint8, 0);
  return id;
}

std::unique_ptr<Communicator> join_nccl(const LaunchEnvironment& launch, void* stream,
                                        const WorldOptions& options) {
  NcclOptions nccl = options.nccl;
  nccl.device = launch.local_rank;
  nccl.stream = stream;
  nccl.timeout_s = options.timeout_s;
  nccl.board = nullptr;
  nccl.recorder = options.recorder;
  NcclId id{};
  if (launch.world_size == 1) {
    id = make_nccl_id();
  } else if (launch.master_host.empty()) {
    id = share_id_by_mpi(launch, options);
  } else {
    const StorePointer store = open_store(launch, options);
    const std::string prefix = "tessera/" + launch.job + "/";
    id = share_id(*store, prefix, launch, options.token);
    nccl.board = std::make_shared<StoreBoard>(store, prefix + "abort/");
  }
  return make_nccl_world(id, launch.rank, launch.world_size, nccl);
}

}  // namespace

std::unique_ptr<Communicator> make_world(const LaunchEnvironment& launch, DeviceKind device,
                                         void* stream, const WorldOptions& options) {
  if (device == DeviceKind::cuda) return join_nccl(launch, stream, options);
  if (launch.world_size == 1) return make_solo_world();
  std::unique_ptr<Communicator> world = join_mpi(launch, options);
  return options.recorder != nullptr ? recorded(std::move(world), *options.recorder)
                                     : std::move(world);
}

}  // namespace tessera
