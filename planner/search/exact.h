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
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/spec/units.h"
#include "planner/plan/phase_seconds.h"
#include "planner/plan/schedule.h"
#include "planner/pricing/evaluate.h"
#include "planner/request/candidate.h"
#include "planner/request/objective.h"
#include "planner/request/solution.h"
#include "planner/search/incumbent.h"
#include "planner/search/layout_filter.h"
#include "planner/space/layout_space.h"

namespace tessera {

struct SearchProblem {
  ClusterSpec cluster;
  std::vector<Role> roles;  // in the order of enum Role
  std::vector<ScheduledCall> schedule;
  PhaseSeconds fixed_seconds{};  // of calls without a model; they run on the
                                 // actor's block
  Bytes memory_limit;            // per rank
  /// Candidates that need more than this are not priced: at least `memory_limit`, and the same in
  /// all searches that share a FrontStore. Below it: `memory_limit`.
  Bytes priced_limit;
  /// On a cluster with several GPU types: the two above by view of a pool (spec/node_groups.h).
  struct View {
    PhaseSeconds fixed_seconds{};
    Bytes memory_limit, priced_limit;
  };
  std::vector<View> views;
  /// Views of the placement's blocks that may be used, all where it is empty.
  std::function<bool(const Placement&, const std::vector<int>& views)> allows_views;
  int gpus = 0;            // at most so many in all; 0 = the cluster's
  std::vector<int> sizes;  // that a block may have, ascending; empty = block_sizes of the cluster
  Objective objective = Objective::step_time;
  /// What is fixed for a role, for a FrontStore.
  EnumArray<Role, RoleSettings> settings;
  /// Layouts of a role that may be used. Prices do not depend on it.
  EnumArray<Role, LayoutFilter> layouts;
  /// Of two such roles in one block the group degrees are equal (planner/engines/group_degrees.h).
  EnumArray<Role, bool> shares_groups{};
  /// They agree in all of their layout: the reference is the actor without its adapters.
  bool alike_layouts = false;
  /// Actor and rollout have equal tensor parallel degrees, on the same GPUs (Engine::fixed_order).
  bool equal_tp = false;
  std::vector<int> policy_lags = {0};  // of placements with the rollout apart
  /// Only plans that are better than this one are looked for.
  Incumbent better_than;
  std::vector<Placement> placements;  // all of them, or those that the user allows
  std::function<std::vector<LayoutSpace>(Role role, int gpus)> spaces;
  Evaluator evaluator;
  /// What a rank holds of a candidate between calls and while weights move: no more than those need
  /// that differ from it in recomputation or have larger batches. Empty = nothing is known of it
  /// before prices are.
  struct Held {
    Bytes between_calls, in_reshard;
  };
  std::function<Held(const Candidate&)> held;
  /// Ends a search by Stopped (cost_models/documents/stopped.h). What its FrontStore has by then
  /// serves the next one.
  std::stop_token stop{};
};

/// The part that may be left of the value of a rollout apart that the step waits for, where it is
/// not best.
inline constexpr double kApartSlack = 0.03;

struct SearchResult {
  /// The best of each feasible placement (and lag), ascending by value. Placements with the rollout
  /// apart that the step waits for count as one, and only where its best is first it is exact: else
  /// up to kApartSlack of its value may be left, and what a pool whose replicas share the
  /// sequences unevenly might gain.
  std::vector<Solution> best;
  std::int64_t evaluated = 0;  // candidates whose prices were compared
  std::int64_t pruned = 0;     // branches cut off by a bound
};

SearchResult search_exactly(const SearchProblem& problem);

/// Prices and fronts of roles, kept between searches of one request that differ in `settings`,
/// placements, budget or objective only: what no change touches is not worked out again. One
/// thread.
class FrontStore {
 public:
  FrontStore();
  ~FrontStore();
  struct State;

 private:
  friend SearchResult search_exactly(const SearchProblem& problem, FrontStore& store);

  std::unique_ptr<State> state_;
};
SearchResult search_exactly(const SearchProblem& problem, FrontStore& store);

/// A plan of the first placement that has one: what tells whether anything fits.
std::optional<Solution> any_plan(SearchProblem problem, FrontStore& store);

/// The best plans that are not beaten in both GPUs and step: `best_of` with
/// each number of GPUs of `counts` as its limit (ascending), those that bring
/// nothing left out.
std::vector<Solution> pareto_front(
    const SearchProblem& problem, const std::vector<int>& counts,
    const std::function<SearchResult(const SearchProblem&)>& best_of);

}  // namespace tessera
