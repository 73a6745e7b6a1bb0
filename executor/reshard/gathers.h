// The part of a ReshardPlan that all-gathers can do.
//
// Where every rank of a micro data-parallel group lacks exactly what the others hold, in equal
// blocks that together are the destination, one all-gather stands for all its transfers. A pure
// function of metadata: every rank finds the same groups.
#pragma once

#include <cstdint>
#include <vector>

#include "cost_models/layout/reshard_plan.h"
#include "executor/reshard/byte_schedule.h"

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

}  // namespace tessera
