// The exact search: every placement of the roles, every split of the GPUs, every candidate per
// role.
//
// Cost evaluation of every candidate -> Pareto fronts per (role, GPUs) in (seconds of each phase,
// resident bytes, bytes in the worst phase) -> per placement branch and bound over the sizes of its
// blocks, whose roles' fronts are merged lazily. Dominance and bounds only discard what cannot win,
// so the result is the optimum of the space under the evaluator. A rank fits when, in every phase,
// the bytes of each colocated role's fullest rank together stay within the limit. Deterministic:
// equal steps go to the placement, sizes and candidates that come first.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <vector>

#include "planner/search/evaluate.h"
#include "planner/search/iteration.h"

namespace tessera {

/// Roles of each block, in the order of their first roles; the rollout is in the actor's.
using Placement = std::vector<std::vector<Role>>;

/// "actor+reference | critic"; one block of all roles is "colocated".
std::string describe(const Placement& placement);

struct SearchProblem {
  ClusterSpec cluster;
  std::vector<Role> roles;  // in the order of enum Role
  std::vector<ScheduledCall> schedule;
  PhaseSeconds fixed_seconds{};       // of calls without a model; they run on the actor's block
  std::int64_t memory_limit = 0;      // bytes per rank
  std::vector<Placement> placements;  // all of them, or those that the user allows
  std::function<std::vector<Candidate>(Role role, int gpus)> candidates;
  Evaluator evaluator;
};

/// All set partitions of `roles` (restricted growth order); the rollout stays with the actor.
std::vector<Placement> all_placements(const std::vector<Role>& roles);

struct Solution {
  Placement placement;
  std::vector<int> sizes, first_rank;  // by block
  std::map<Role, Candidate> choice;
  PhaseSeconds seconds{};  // of every scheduled phase
  double step_s = std::numeric_limits<double>::infinity();
  bool found() const { return !sizes.empty(); }
};

struct SearchResult {
  std::vector<Solution> best;  // of each feasible placement, ascending by step
  std::int64_t evaluated = 0;  // candidates priced
  std::int64_t pruned = 0;     // branches cut off by a bound
};

SearchResult search_exactly(const SearchProblem& problem);

}  // namespace tessera
