// The part of a ReshardPlan that all-gathers can do.
//
// Where every rank of a micro data-parallel group lacks exactly what the others hold, in equal
// blocks that together are the destination, one all-gather stands for all its transfers. A pure
// function of metadata: every rank finds the same groups.
#pragma once

#include <cstdint>
#include <vector>

#include "cost_models/layout/reshard_plan.h"
#include "executor/arena/byte_schedule.h"
#include "executor/transfers/staged_rounds.h"

namespace tessera {

/// One tensor in one group of this rank; offsets in bytes.
struct Gather {
  int group = 0;
  std::int64_t from = 0, to = 0, bytes = 0;  // `bytes` of one block
};

struct GatherSchedule {
  std::vector<std::vector<int>> groups;  // of all ranks, in the order of their blocks
  std::vector<Gather> gathers;           // of this rank
  std::vector<char> covered;             // by transfer: an all-gather does it
};

/// `source` and `destination` place boxes in this rank's memories.
GatherSchedule find_gathers(const ReshardPlan& plan, std::span<const ShardedTensor> tensors,
                            int rank, const LocateBox& source, const LocateBox& destination);

/// Small gathers of one group as one: every member's block is packed into its place in a stage.
struct MergedGather {
  std::int64_t stage = 0;          // offset of the first member's block
  std::int64_t bytes = 0;          // of one member's block
  std::vector<StagedCopy> pack;    // source memory -> this rank's block
  std::vector<StagedCopy> unpack;  // the others' blocks -> destination memory
  std::vector<StagedCopy> kept;    // source -> destination memory
};

/// This rank's gathers in one group that it is a member of.
struct GroupGathers {
  std::vector<Gather> large;         // each by itself
  std::vector<MergedGather> merged;  // in turn in kParts parts of the stage
  MergedGather last;                 // behind them all: blocks of a few bytes that mean nothing
  std::int64_t stage_bytes = 0;      // equal on all members
  static constexpr std::int64_t kParts = 3;
};

/// Merges blocks smaller than `limits.merge_below`, in as many rounds as a stage of at most
/// `limits.stage_bytes` (but for alignment) needs. `index` is this rank's in the group.
GroupGathers merged_gathers(const GatherSchedule& schedule, int group, int index,
                            const MergeLimits& limits);

}  // namespace tessera
