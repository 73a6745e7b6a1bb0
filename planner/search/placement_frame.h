// One placement as its search sees it: blocks, chunks of the iteration, sizes and views that its
// blocks may have.
//
// Keeps references to the problem, the placement and the fronts; otherwise plain values.
#pragma once

#include <vector>

#include "cost_models/spec/node_groups.h"
#include "cost_models/spec/units.h"
#include "planner/plan/phase_seconds.h"
#include "planner/pricing/chunk_seconds.h"
#include "planner/pricing/iteration.h"
#include "planner/search/exact.h"
#include "planner/search/view_fronts.h"
#include "planner/space/place_pools.h"

namespace tessera {

struct PlacementFrame {
  const SearchProblem& problem;
  const Placement& placement;
  ViewFronts& fronts;
  bool apart;  // the rollout has a block of its own
  int gpus;    // at most, in all
  Iteration iteration;
  std::vector<int> sizes;             // that a block may have
  std::vector<GroupRange> ranges;     // by view
  std::vector<double> least_weights;  // what a GPU counts at least, by view

  PlacementFrame(const SearchProblem& asked, const Placement& placed, int policy_lag,
                 ViewFronts& view_fronts)
      : problem(asked),
        placement(placed),
        fronts(view_fronts),
        apart(rollout_apart(placed)),
        gpus(asked.gpus > 0 ? asked.gpus : static_cast<int>(asked.cluster.gpus())),
        iteration(iteration_of(schedule_of(asked.schedule, placed, policy_lag), placed)),
        sizes(asked.sizes.empty() ? block_sizes(asked.cluster) : asked.sizes),
        ranges(pool_views(asked.cluster)),
        least_weights(tessera::least_weights(asked.cluster)) {}

  std::size_t blocks() const { return placement.size(); }
  bool rollout_alone(std::size_t block) const {
    return placement[block].size() == 1 && placement[block].front() == Role::rollout;
  }
  std::size_t views() const { return least_weights.size(); }
  /// Roles of a block that have a front (a rollout beside the actor is part of the actor's).
  std::vector<Role> owners(std::size_t block) const {
    std::vector<Role> roles;
    for (const Role role : placement[block]) {
      if (apart || role != Role::rollout) roles.push_back(role);
    }
    return roles;
  }
  /// Those of them that have their group degrees in common; empty where fewer than two do.
  std::vector<Role> sharing(std::size_t block) const {
    std::vector<Role> roles = owners(block);
    std::erase_if(roles, [&](Role role) { return !problem.shares_groups[role]; });
    if (roles.size() < 2) roles.clear();
    return roles;
  }
  ChunkSeconds of_block(std::size_t block, const PhaseSeconds& seconds) const {
    return iteration.by_chunk(static_cast<int>(block), seconds);
  }
  Seconds step_seconds(const ChunkSeconds& seconds) const {
    return iteration.step_seconds(seconds);
  }
  double least_billed(int view, int size) const {
    return size * least_weights[static_cast<std::size_t>(view)];
  }

 private:
  static Iteration iteration_of(const std::vector<ScheduledCall>& schedule,
                                const Placement& placement) {
    return Iteration(schedule, blocks_of(schedule, placement));
  }
};

}  // namespace tessera
