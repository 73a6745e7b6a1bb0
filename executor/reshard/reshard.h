// One pair of layouts between which a run moves weights in every step.
//
// Built once from metadata on every rank; run() is collective over the world. Torch-free: the
// caller owns source and destination arenas (host or device memory, as the communicator's). Not
// thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cost_models/layout/reshard_plan.h"
#include "executor/arena/byte_schedule.h"
#include "executor/reshard/reshard_report.h"
#include "executor/reshard/weight_reshard.h"

namespace tessera {

class Reshard {
 public:
  /// Plans the reshard `from` -> `to` of all tensors in `table` for `rank`. `minimal` moves the
  /// plan's ranges straight to their places; `full` gathers every tensor whole at every destination
  /// and slices there, one tensor at a time. `options` as the plan has them (reshard_options).
  Reshard(const ParameterTable& table, const RankMap& from, const RankMap& to, DType dtype,
          ReshardMode mode, int rank, const ReshardOptions& options = {});

  const ReshardPlan& plan() const { return plan_; }
  /// This rank's memory before and after; nullptr where the rank has no part.
  const ArenaLayout* source() const { return source_ ? &*source_ : nullptr; }
  const ArenaLayout* destination() const { return destination_ ? &*destination_ : nullptr; }
  /// Bytes of scratch memory that run() needs on this rank (0 in minimal mode).
  std::int64_t staging_bytes() const { return staging_bytes_; }

  /// This reshard in minimal mode for WeightReshard: this rank's and its peers' memory as
  /// source() and destination() lay them out. Refers to this object. `training`: where the source
  /// lies instead, by rank, e.g. views of the rollout's memory (shared_arena).
  PlacedReshard placed() const;
  PlacedReshard placed(std::function<ArenaLayout(int rank)> training,
                       const ArenaLayout& rollout) const;

  ReshardReport run(Communicator& world, const void* source, void* destination, void* staging,
                    const ReshardHooks& hooks = {}) const;

 private:
  void compile_minimal();
  void compile_full(const ParameterTable& table);

  ParameterTable table_;
  RankMap from_, to_;
  DType dtype_;
  int rank_;
  ReshardMode mode_;
  std::optional<ArenaLayout> source_, destination_;
  ReshardPlan plan_;
  /// Minimal: one round. Full: per tensor, a gather into the staging memory and a slice out of it.
  struct Round {
    ByteSchedule gather;
    ByteSchedule slice;
  };
  std::vector<Round> rounds_;
  std::int64_t staging_bytes_ = 0;
  std::int64_t received_ = 0;
  std::int64_t lower_bound_ = 0;  // of the busiest rank in minimal mode
};

}  // namespace tessera
