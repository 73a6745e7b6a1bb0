// Time and memory of a candidate under the cost models, and the interface that any other evaluator
// (simulated, measured) implements.
//
// Formulas: a forward pipeline of m micro-batches takes sum_s t_s + (m - 1) max_s t_s, 1F1B what
// pipeline_time.h says; gradients and, under
// ZeRO-1, parameters move 2 (d - 1) / d of their bytes per optimizer step (Rajbhandari et al.
// 2020); decoding is the sum of steps over the length distribution (lengths.h). Nothing overlaps:
// the executor reduces after the last backward. One CostEvaluator belongs to one thread (it
// caches).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "cost_models/layout/parameter_table.h"
#include "planner/request/request.h"
#include "planner/plan/phase_seconds.h"
#include "planner/request/candidate.h"

namespace tessera {

/// Cost of one role under one candidate.
struct RoleCost {
  PhaseSeconds seconds;        // of the role's phases; others 0
  PhaseSeconds communication;  // the part of `seconds` that is communication
  std::int64_t resident = 0;  // bytes of the fullest rank outside the role's phases
  std::int64_t peak = 0;      // bytes of the fullest rank in the worst of the role's phases
  EnumArray<Phase, std::int64_t> bytes;  // of that rank in each of them; others 0
  std::int64_t switching = 0;            // bytes while weights move (phase reshard)
  /// A multiple of the token limit may need fewer bytes: an only micro-batch whose activations and
  /// gradients do not meet.
  bool may_shrink = false;
};

/// What the search needs to know. Functions are pure: equal arguments, equal results. Bytes do not
/// fall when a token limit doubles (unless a cost says may_shrink) or the rollout's slots grow,
/// seconds do not with more
/// recomputation or offload. The reshard's seconds depend on the layouts of both candidates only,
/// and where the rollout has ranks of its own (not `shared`) on its candidate alone. Where a cost
/// states `bytes`, a call depends on no token limit but its own, and resident and switching on
/// none.
struct Evaluator {
  /// Phases that need more than the search's limit may have no seconds.
  std::function<RoleCost(const Candidate&)> role;
  /// The same seconds whatever memory the candidate needs; empty = those of `role`.
  std::function<PhaseSeconds(const Candidate&)> seconds;
  std::function<double(const Candidate& actor, const Candidate& rollout, bool shared)>
      reshard_seconds;
};

/// Parameter tables of the models that several evaluators ask for.
class ModelTables {
 public:
  std::shared_ptr<const ParameterTable> of(const ModelSpec& model);

 private:
  std::vector<std::shared_ptr<const ParameterTable>> tables_;
};

/// Bytes of a switch on the same ranks: of the rank that receives most, and of the one that sends
/// most.
struct SwitchBytes {
  std::int64_t received = 0, sent = 0;
};

class CostEvaluator {
 public:
  explicit CostEvaluator(const PlanRequest& request);
  CostEvaluator(const PlanRequest& request, ModelTables& tables);
  ~CostEvaluator();

  const PlanRequest& request() const;
  /// The same with cluster and constants as a pool of that view (Candidate::view) sees them.
  const PlanRequest& request(int view) const;
  /// Prices by these constants from now on; what depends on none stays known.
  void recalibrate(const Calibration& calibration);

  RoleCost cost(const Candidate& candidate) const;
  /// Of the role's phases, without the memory.
  PhaseSeconds seconds(const Candidate& candidate) const;
  /// `shared`: the rollout is on the actor's ranks; else on ranks of its own, and where the two
  /// pools have other GPU types at the rate of the slower.
  double reshard_seconds(const Candidate& actor, const Candidate& rollout,
                         bool shared = true) const;

  /// Bytes of the role's fullest rank in a phase; the role's own phases or any other.
  MemoryUse memory(const Candidate& candidate, Phase phase) const;
  /// The same of a rank of a given stage, and the stage of the fullest rank.
  MemoryUse memory(const Candidate& candidate, Phase phase, int stage) const;
  int fullest_stage(const Candidate& candidate, Phase phase) const;

  /// Bytes that the busiest rank receives in a switch from actor to rollout on the same ranks: what
  /// the exact ReshardPlan says, in closed form over the parameter table.
  std::int64_t reshard_bytes(const Candidate& actor, const Candidate& rollout) const;
  /// The same, with those of the busiest sender.
  SwitchBytes switch_bytes(const Candidate& actor, const Candidate& rollout) const;

  /// Rows of the parameter table of a role's model.
  std::size_t tensors(Role role) const;

  /// Keeps a reference to this object. Candidates that exceed memory_limit alone have no seconds.
  Evaluator evaluator() const;

  struct State;  // planner/pricing/evaluate_state.h

 private:
  friend class RoleOperations;  // role_operations.h
  void add_states(const PlanRequest& request, ModelTables& tables);
  State& state(int view) const { return *states_[static_cast<std::size_t>(view)]; }

  std::vector<std::unique_ptr<State>> states_;  // by view
};

/// Bytes of a device that a plan's peak may reach: its memory less what fragmentation wastes. Peaks
/// count the reserve of context and libraries.
std::int64_t usable_memory(const ClusterSpec& cluster, const Calibration& calibration);
/// The same of a rank's own GPU type.
std::int64_t usable_memory(const ClusterSpec& cluster, const Calibration& calibration, int rank);

/// Bytes of a rank that the roles on it may use: usable_memory less the reserve.
std::int64_t memory_limit(const PlanRequest& request);

/// "91.20 GiB of 76.00 GiB": the roles' bytes with the reserve, as peaks are shown, of
/// usable_memory.
std::string of_usable(const PlanRequest& request, std::int64_t bytes);

/// A call that runs no model (a rule's rewards, advantages): arithmetic of the host over the step's
/// sequences. 0.1 ms for 512 of them (tessera run, digits, 4 H200).
double host_call_seconds(const Workload& workload, const Calibration& calibration);

/// Seconds of the calls that run no model, by phase.
PhaseSeconds compute_call_seconds(const PlanRequest& request);

}  // namespace tessera
