// Prices layouts that are given in full: no search, nothing chosen.
//
// Pure functions over a CostEvaluator (one thread each; evaluators of one model can share their
// ModelTables). Seconds by phase, bytes by phase and class. A layout that does not fit is priced
// all the same and says why.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cost_models/spec/units.h"
#include "planner/plan/phase_seconds.h"
#include "planner/plan/placement.h"
#include "planner/pricing/evaluate.h"
#include "planner/request/candidate.h"
#include "planner/request/request.h"

namespace tessera {

/// What is impossible about a candidate for its model, its batch and the cluster, whatever the
/// memory: one sentence; empty = nothing.
std::string impossible(const PlanRequest& request, const Candidate& candidate);

/// One role on one layout.
struct FixedCost {
  PhaseSeconds seconds{}, communication{};  // of the role's phases; communication is a part
  std::map<Phase, MemoryUse> memory;        // of the fullest rank, in each of the role's phases
  Phase worst = Phase::save_checkpoint;     // in which most bytes are needed
  Bytes peak, limit;
  std::string why;  // impossible layout; or rank, phase, largest class and bytes; empty = it fits

  bool fits() const { return why.empty(); }
};

/// A layout that is impossible is not priced. The workload says which phases the role has: one with
/// a single training call prices pre-training (response_tokens are the positions that are scored).
FixedCost price_fixed(CostEvaluator& costs, const Candidate& candidate);

/// One iteration: every role of the workload with its layout and block.
struct FixedIteration {
  PhaseSeconds seconds{};
  Seconds step_s;
  std::map<Role, FixedCost> roles;
  std::vector<Bytes> peak;  // of the fullest rank of each block
  std::string why;

  bool fits() const { return why.empty(); }
};

/// Its seconds by phase alone, whatever memory it needs. `apart`: the rollout has ranks of its own.
PhaseSeconds iteration_seconds(CostEvaluator& costs, const std::map<Role, Candidate>& choice,
                               bool apart);

/// `placement`: planner/plan/placement.h; a rollout in a block of its own receives its weights from
/// other ranks.
/// `policy_lag` 1 generates the next step's responses meanwhile (one step off policy).
/// Precondition: `choice` has every role of the placement.
FixedIteration price_iteration(CostEvaluator& costs, const std::map<Role, Candidate>& choice,
                               const Placement& placement, int policy_lag = 0);

/// Bytes of a rank that runs these roles, one phase after the other.
Bytes bytes_together(const std::vector<RoleCost>& roles);

/// Of a pool's ranks, counted from its first, the first of a pipeline stage in the candidate's
/// order.
int first_rank_of_stage(const Candidate& candidate, const EngineTraits& traits, int stage);

/// "weights", "optimizer", ... and bytes of the largest class.
std::pair<std::string, Bytes> largest_class(const MemoryUse& use);

}  // namespace tessera
