// The search with the number of sequences that a rollout's replica decodes at once solved from the
// memory.
//
// search_exactly tries halvings. The memory that a rollout has depends on whoever shares its GPUs,
// so each solution takes the largest number that fits beside the others (or the one that makes as
// many waves of generation even, where that is quicker). What other solutions could gain is bounded
// by searches in which a number n needs its own bytes and takes the seconds of the next number
// tried; numbers come closer where such a search finds anything, until nothing is left or the rest
// is the gap. That seconds do not fall below both ends' between two numbers is taken for granted.
// Sequences; one thread.
#pragma once

#include "planner/request/request.h"
#include "planner/request/solution.h"
#include "planner/search/exact.h"

namespace tessera {

struct SolvedSearch {
  SearchResult result;  // as search_exactly gives it, with solved numbers
  /// No plan of the space is better than (1 - gap) of the first one's value; where there is none,
  /// of the value of SearchProblem::better_than.
  double gap = 0;
};

/// `request`: the problem's. A number that is fixed stays. After `rounds` of closer numbers the
/// rest is the gap.
SolvedSearch search_with_slots(const SearchProblem& problem, const PlanRequest& request,
                               FrontStore& store, int rounds = 32);

/// Adds a solution to the best of each placement and lag, which stay ascending by the objective.
void take_up(Objective objective, Solution next, std::vector<Solution>& best);

/// The solution with the number of sequences at once solved, all else as it is.
Solution with_most_slots(const SearchProblem& problem, const PlanRequest& request,
                         const Solution& solution);

}  // namespace tessera
