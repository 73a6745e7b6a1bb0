// Branch and bound over the block sizes and front points of one placement.
//
// Sizes of each block in the order of their bounds, so that a good plan is found early. With
// several GPU types, over the views of the blocks (spec/node_groups.h) as well. Deterministic.
#pragma once

#include <cstdint>
#include <memory>

#include "planner/request/solution.h"
#include "planner/search/exact.h"
#include "planner/search/incumbent.h"
#include "planner/search/view_fronts.h"

namespace tessera {

class PlacementSearch {
 public:
  /// Keeps the references.
  PlacementSearch(const SearchProblem& problem, const Placement& placement, int policy_lag,
                  ViewFronts& fronts);
  ~PlacementSearch();
  PlacementSearch(PlacementSearch&&) noexcept;
  PlacementSearch& operator=(PlacementSearch&&) noexcept;

  /// No plan of the placement has a smaller value of the objective (but for its GPUs' prices, which
  /// count at their least); infinite where none has room.
  double bound() const;
  std::size_t blocks() const;

  /// A narrow pass over few points of the fronts finds a good plan, a whole one the best.
  enum class Pass { narrow, whole };
  /// The best plan that beats `rivals`; Solution::found() is false where there is none. `pruned`
  /// counts the branches that bounds cut off.
  Solution run(const Rivals& rivals, Pass pass, std::int64_t& pruned);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
