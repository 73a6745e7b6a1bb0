// The bytes of a rank of a solution: what the roles of its block hold in a phase, and the fullest
// rank of all.
//
// Pure functions over the evaluators, in the order of the solution's blocks; ranks are counted from
// the first of their block. Bytes.
#pragma once

#include <string_view>
#include <vector>

#include "cost_models/layout/rank_map.h"
#include "cost_models/memory.h"
#include "cost_models/spec/units.h"
#include "planner/plan/schedule.h"
#include "planner/pricing/evaluate.h"
#include "planner/request/solution.h"

namespace tessera {

/// A role in a phase, by the stages of its pipeline.
struct RoleMemory {
  Candidate candidate;
  RankOrder order = RankOrder::contiguous;  // in which the block's ranks are dealt to it
  std::vector<MemoryUse> by_stage;          // without the reserve
  std::vector<Bytes> bytes;                 // their totals
};

/// The roles of a block in a phase.
struct BlockMemory {
  std::vector<RoleMemory> roles;
  Bytes reserve;  // of a rank, outside the allocator: context, libraries, communicators
};

/// Precondition: the solution has every role of the block. `generating` prices the rollout.
BlockMemory block_memory(const Solution& solution, std::size_t block, Phase phase,
                         CostEvaluator& costs, CostEvaluator& generating);

/// The pipeline stage that a rank has in a role.
int stage_of_rank(const RoleMemory& role, int rank);

/// All that a rank holds, the reserve too.
Bytes bytes_of_rank(const BlockMemory& block, int rank);

/// Bytes of the fullest rank over all phases, every rank with its own stages and the reserve of
/// context and libraries. `generating` prices the rollout.
Bytes peak_bytes(const std::vector<ScheduledCall>& schedule, const Solution& solution,
                 CostEvaluator& costs, CostEvaluator& generating);

}  // namespace tessera
