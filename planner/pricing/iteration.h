// One iteration as a graph of calls: data edges, and the order of calls that share ranks.
//
// Calls of one block run one after another in the schedule's order, calls of different blocks when
// their inputs are there; the step takes the longest path (Boost.Graph orders the nodes). Calls
// that can only follow one another are merged into one chunk, because a sum is all that matters of
// them. Plain values.
#pragma once

#include <vector>

#include "cost_models/spec/enum_array.h"
#include "cost_models/spec/units.h"
#include "planner/plan/phase_seconds.h"
#include "planner/plan/placement.h"
#include "planner/plan/schedule.h"
#include "planner/pricing/chunk_seconds.h"

namespace tessera {

/// True when the rollout has a block of its own.
bool rollout_apart(const Placement& placement);

/// The order of calls on this placement. A rollout of its own receives the weights in its block.
/// With `policy_lag` 1 it generates the next step's responses: nothing waits for gen, and
/// everything waits for the weights to have left.
std::vector<ScheduledCall> schedule_of(std::vector<ScheduledCall> schedule,
                                       const Placement& placement, int policy_lag);

/// The block of every scheduled phase; what runs no model is on the actor's.
EnumArray<Phase, int> blocks_of(const std::vector<ScheduledCall>& schedule,
                                const Placement& placement);

struct Chunk {
  int block = 0;
  std::vector<Phase> phases;
  std::vector<int> before;  // chunks that must have ended
};

class Iteration {
 public:
  /// `block_of[phase]` of every scheduled phase. Precondition: the schedule's dependencies have no
  /// cycle and its order respects them.
  Iteration(const std::vector<ScheduledCall>& schedule, const EnumArray<Phase, int>& block_of);

  /// In topological order.
  const std::vector<Chunk>& chunks() const { return chunks_; }
  /// Chunk of a scheduled phase.
  ChunkIndex chunk_of(Phase phase) const { return chunk_of_[phase]; }
  /// Of the phases of one block's chunks, by chunk.
  ChunkSeconds by_chunk(int block, const PhaseSeconds& seconds) const;

  /// Longest path when chunk c takes seconds[c].
  Seconds step_seconds(const ChunkSeconds& seconds) const;
  Seconds step_seconds(const PhaseSeconds& seconds) const;
  /// When each scheduled phase starts then, from the step's start.
  PhaseSeconds phase_starts(const PhaseSeconds& seconds) const;

 private:
  std::vector<Chunk> chunks_;
  EnumArray<Phase, ChunkIndex> chunk_of_{};
};

}  // namespace tessera
