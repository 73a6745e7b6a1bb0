// Actor and rollout on the same ranks: options chosen together, with the reshard between.
//
// A pair's seconds are both options' and the reshard's; its bytes are both residents', and on top
// the most that either needs in its phases or both while weights move. Only pairs that can still
// belong to a plan below a limit are built: an actor's option is dropped as a whole where the
// quickest rollout that fits beside it is too slow. Pure but for what Fronts remembers.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "cost_models/spec/units.h"
#include "planner/pricing/chunk_seconds.h"
#include "planner/pricing/iteration.h"
#include "planner/search/fronts.h"
#include "planner/search/pareto.h"

namespace tessera {

/// The least seconds, by chunk, of a rollout's options by the bytes that are left for it.
class RolloutWithin {
 public:
  RolloutWithin() = default;
  /// Of the options that were selected on so many GPUs; they are in a block of the iteration.
  RolloutWithin(const Iteration& iteration, std::size_t block, Fronts& fronts, int gpus,
                const Selection& selection);

  /// Of options that need no more than `left` between and in calls, and of others that need no more
  /// than `in_reshard` while weights move: whatever fits takes no less than either. nullopt:
  /// nothing does.
  std::optional<ChunkSeconds> operator()(Bytes left, Bytes in_reshard) const;

 private:
  struct ByNeed {
    std::vector<Bytes> needs;         // ascending: with which something quicker fits,
    std::vector<ChunkSeconds> least;  // and the least seconds then

    void add(Bytes need, const ChunkSeconds& seconds);
    const ChunkSeconds* within(Bytes bytes) const;
  };
  ByNeed in_calls_, in_reshard_;
};

struct PairQuery {
  std::size_t block = 0;
  int gpus = 0;
  ChunkSeconds rest{};    // at least, of all else: calls without a model, other roles and blocks
  Seconds limit;          // of the step: pairs that cannot stay below it are left out
  Bytes bytes;            // for the two roles
  bool equal_tp = false;  // pairs of other tensor parallel degrees are left out
  bool alone = false;     // no other role shares the ranks: what the pair leaves does not matter
  Selection actors, rollouts;  // on these GPUs
  RolloutWithin within;        // of these rollouts
  // A narrow search takes only the most promising actors, and the quickest pairs of each.
  std::size_t most_actors = std::numeric_limits<std::size_t>::max();
  std::size_t most_pairs_each = std::numeric_limits<std::size_t>::max();
};

/// The front of all pairs within the query; option[0] and `rollout` are Fronts' indices of the two
/// options. `pruned` counts what the limit left out.
std::vector<FrontPoint> pairs_of(const Iteration& iteration, Fronts& fronts, const PairQuery& query,
                                 std::int64_t& pruned);

}  // namespace tessera
