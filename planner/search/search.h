// The planner: a request in, a plan with its certificate or the reasons why there is none out.
//
// Pure: equal requests give equal outcomes (the caller passes the time for the provenance). The
// prediction's mfu is the actor's update, 3 x forward FLOPs over the device's stated bf16 peak, as
// verl's perf/mfu/actor. The certificate's margin is the relative error e of the model at which
// value (1 + e) = runner-up (1 - e).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/search/evaluate.h"
#include "planner/search/exact.h"

namespace tessera {

/// The rank that comes closest to fitting, and what is too much there.
struct MemoryShortage {
  Role role = Role::actor;  // with most bytes on the rank in the phase
  Phase phase = Phase::gen;
  int rank = 0;
  std::string layout;        // of the role
  std::string gpu;           // type of the rank, where the cluster has several
  std::string tensor_class;  // the largest of the role: "weights", "optimizer", ...
  std::int64_t class_bytes = 0;
  std::int64_t needed = 0, limit = 0;  // of all roles on the rank together

  std::int64_t missing() const { return needed - limit; }
};

struct Infeasible {
  std::vector<MemoryShortage> shortages;
  std::vector<std::string> reasons;  // one line each, shortages included
  std::string nearest_fix;           // empty: none was found
};

using PlanOutcome = std::variant<Plan, Infeasible>;

/// nullopt and Problems when the request contradicts itself: unknown engine, settings for roles
/// that the workload does not have, a placement that is no partition of its roles. `evaluator`
/// replaces the cost models' seconds and the reshard's; memory stays theirs.
std::optional<PlanOutcome> make_plan(const PlanRequest& request, Problems& problems,
                                     const std::optional<Evaluator>& evaluator = std::nullopt);

/// Every number of GPUs up to a node's, and up to 26 numbers of whole nodes with the cluster's.
std::vector<int> pareto_counts(const ClusterSpec& cluster);

/// Answers one request under changing settings: only what a change touches is worked out again.
/// Keeps prices and fronts; one thread.
class Planner {
 public:
  explicit Planner(const PlanRequest& request);
  ~Planner();

  /// As make_plan, with other settings, objective and GPU budget (0 = all of the cluster's).
  std::optional<PlanOutcome> plan(const FixedSettings& fixed, Objective objective,
                                  Problems& problems);
  /// Plans on at most pareto_counts GPUs that no other beats in both GPUs and step, ascending.
  std::vector<Solution> pareto(const FixedSettings& fixed, Problems& problems);

  struct State;  // planner/search/search.cc

 private:
  std::unique_ptr<State> state_;
};

/// The search problem of a request. `costs` must outlive it. `replanned`: prices are to serve other
/// settings as well, so fixed degrees do not limit the candidates but SearchProblem::allows.
SearchProblem search_problem(const PlanRequest& request, const Capabilities& capabilities,
                             const CostEvaluator& costs,
                             const std::optional<Evaluator>& evaluator = std::nullopt,
                             bool replanned = false);

/// Placements that `request.fixed.placement` allows: all, or the one that is named ("colocated",
/// "standalone", "actor+reference | critic"). Empty and a Problem when it names none.
std::vector<Placement> allowed_placements(const PlanRequest& request, Problems& problems);

/// A switch with the rollout's rank map that it is for.
struct MappedReshard {
  RankOrder order = RankOrder::contiguous;
  std::vector<int> ranks;
  PlannedReshard pair;
};

/// Exact reshards that were worked out, by what they depend on: the layouts and first ranks of
/// actor and rollout.
using KnownReshards = std::map<std::tuple<Candidate, Candidate, int, int>, MappedReshard>;

/// The whole plan of a solution: ranks, memory of every phase, exact reshard, environment,
/// prediction. `known` serves and takes up the reshard.
Plan compose_plan(const PlanRequest& request, const CostEvaluator& costs, const Solution& solution,
                  KnownReshards* known = nullptr);

/// A Problem for every model whose positions are fewer than a sequence's tokens.
void check_lengths(const PlanRequest& request, Problems& problems);

/// Bytes of the fullest rank over all phases, every rank with its own stages and the reserve of
/// context and libraries. `generating` prices the rollout.
std::int64_t peak_bytes(const std::vector<ScheduledCall>& schedule, const Solution& solution,
                        const CostEvaluator& costs, const CostEvaluator& generating);

/// " on H100-SXM-80GB | H20-96GB": the GPU types of the blocks; empty where there is one type.
std::string describe_types(const ClusterSpec& cluster, const Solution& solution);

/// Why nothing fits, and the smallest single change that makes it fit.
Infeasible explain_infeasible(const PlanRequest& request, const Capabilities& capabilities,
                              const CostEvaluator& costs);

/// "tp2 pp2 dp1 zero1 recompute=full offload=all", for a rollout "tp2 dp2 unmap": what every line
/// that describes a layout says.
std::string describe_layout(const Candidate& candidate);
std::string describe_layout(const Plan& plan, const RolePlan& role);
/// "actor tp2 pp2 dp1 zero1, rollout tp2 dp2" of a solution, and of the plan made of it.
std::string describe(const Solution& solution);
std::string describe_layouts(const Plan& plan);
/// The words for --fix that ask for a solution: every layout, its batches and the placement.
std::vector<std::string> settings_of(const Solution& solution);

/// "colocated", "actor+reference | critic".
std::string describe_placement(const Plan& plan);

}  // namespace tessera
