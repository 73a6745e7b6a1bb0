// The fronts of each view of a cluster with several GPU types; one where all GPUs are alike.
//
// A view's candidates are those of the problem with Candidate::view set, under the view's memory
// limit; they share the problem's FrontStore under names of their own. Keeps a reference to the
// problem; one thread.
#pragma once

#include <memory>
#include <vector>

#include "planner/search/exact.h"
#include "planner/search/fronts.h"

namespace tessera {

class ViewFronts {
 public:
  ViewFronts(const SearchProblem& problem, FrontStore::State& store);

  Fronts& of(int view) { return *fronts_[static_cast<std::size_t>(view)]; }
  /// The problem as pools of that view pose it.
  const SearchProblem& problem(int view) const {
    return view == 0 ? whole_ : *others_[static_cast<std::size_t>(view) - 1];
  }
  std::int64_t evaluated() const;

 private:
  const SearchProblem& whole_;
  std::vector<std::unique_ptr<SearchProblem>> others_;  // of view 1 and on
  std::vector<std::unique_ptr<Fronts>> fronts_;
};

}  // namespace tessera
