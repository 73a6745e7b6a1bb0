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
#include "executor/reshard/byte_schedule.h"

namespace tessera {

/// What one switch did. Bytes of the busiest rank follow from the plan and equal what was moved.
struct ReshardReport {
  double seconds = 0;            // from the first rank's start to the last rank's end
  std::int64_t received = 0;     // by this rank
  std::int64_t busiest = 0;      // by the busiest rank
  std::int64_t lower_bound = 0;  // of the busiest rank
  double gb_per_s() const {
    return seconds > 0 ? static_cast<double>(busiest) * 1e-9 / seconds : 0;
  }
};

/// "[Reshard] 15.8 ms, 5.71 GB received by the busiest rank (lower bound 5.71 GB), 361 GB/s".
std::string to_string(const ReshardReport& report);

/// Called on every rank before the first and after the last byte moves.
struct ReshardHooks {
  std::function<void()> on_start;
  std::function<void(const ReshardReport&)> on_end;
};

class Reshard {
 public:
  /// Plans the switch `from` -> `to` of all tensors in `table` for `rank`. `minimal` moves the
  /// plan's ranges straight to their places; `full` gathers every tensor whole at every destination
  /// and slices there, one tensor at a time.
  Reshard(const ParameterTable& table, const RankMap& from, const RankMap& to, DType dtype,
          ReshardMode mode, int rank);

  const ReshardPlan& plan() const { return plan_; }
  /// This rank's memory before and after; nullptr where the rank has no part.
  const ArenaLayout* source() const { return source_ ? &*source_ : nullptr; }
  const ArenaLayout* destination() const { return destination_ ? &*destination_ : nullptr; }
  /// Bytes of scratch memory that run() needs on this rank (0 in minimal mode).
  std::int64_t staging_bytes() const { return staging_bytes_; }

  ReshardReport run(Communicator& world, const void* source, void* destination, void* staging,
                    const ReshardHooks& hooks = {}) const;

 private:
  void compile_minimal();
  void compile_full(const ParameterTable& table);

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
