// One rank's weights in two layouts on one memory, filled with known values, for benches.
//
// Training slots are views of the rollout's where they nest. Collective where noted. One thread.
#pragma once

#include "executor/tensor/torch.h"

#include <functional>
#include <memory>

#include "executor/comm/communicator.h"
#include "executor/reshard/reshard.h"
#include "executor/storage/block_copies.h"
#include "executor/storage/shared_block.h"

namespace tessera {

/// Where a bench runs. `stream` is torch's current cudaStream_t, nullptr on the CPU.
struct BenchSite {
  Communicator* world = nullptr;
  Communicator* host = nullptr;
  torch::Device device = torch::kCPU;
  void* stream = nullptr;

  bool gpu() const { return device.is_cuda(); }
  std::unique_ptr<SharedBlock> make_block(std::int64_t bytes) const;
  std::unique_ptr<BlockCopies> make_copies() const;
  /// A barrier of the host's GPUs on their streams; nullptr on the CPU. Collective.
  std::unique_ptr<StreamBarrier> make_barrier() const;
  /// Bytes that are free on the device; 0 on the CPU.
  std::int64_t free_bytes() const;
};

class ReshardRig {
 public:
  ReshardRig(const BenchSite& site, const ParameterTable& table, const RankMap& from,
             const RankMap& to, DType dtype);

  const Reshard& reshard() const { return reshard_; }
  const SharedArena& arena() const { return arena_; }
  SharedBlock& block() { return *block_; }

  /// Writes other values everywhere, and into the training slots those of `version`; on the stream.
  void poison();
  void write(int version);
  /// Writes one training slot (index into arena().training.slots).
  void write_slot(std::size_t slot, int version);
  /// Elements of the rollout (or training) slots that are not those of `version`, over all ranks.
  /// Collective.
  std::int64_t wrong_in_rollout(int version) const;
  std::int64_t wrong_in_training(int version) const;

  /// Collective.
  std::unique_ptr<WeightReshard> make_reshard(const WeightReshardOptions& options);

 private:
  torch::Tensor elements(const ArenaSlot& slot) const;
  torch::Tensor values(const ArenaSlot& slot, std::int64_t begin, std::int64_t end,
                       int version) const;
  std::int64_t wrong_in(const ArenaLayout& layout, int version) const;

  const BenchSite& site_;
  const ParameterTable& table_;
  Reshard reshard_;
  std::function<SharedArena(int rank)> arena_on_;
  SharedArena arena_;
  std::unique_ptr<SharedBlock> block_;
  std::unique_ptr<BlockCopies> copies_;
  std::unique_ptr<MemoryOps> ops_;
};

}  // namespace tessera
