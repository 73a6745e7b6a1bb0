// The planner: a request in, a plan with its certificate or the reasons why there is none out.
//
// Pure: equal requests give equal outcomes (the caller passes the time for the provenance). The
// prediction's mfu is the actor's update, 3 x forward FLOPs over the device's stated bf16 peak, as
// verl's perf/mfu/actor. The certificate's margin is the relative error e of the model at which
// value (1 + e) = runner-up (1 - e).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "planner/explain/infeasible.h"
#include "planner/pricing/evaluate.h"
#include "planner/request/objective.h"
#include "planner/request/request.h"
#include "planner/request/solution.h"

namespace tessera {

struct Plan;
struct NearestFix;

using PlanOutcome = std::variant<Plan, Infeasible>;

/// nullopt and Problems when the request contradicts itself: unknown engine, settings for roles
/// that the workload does not have, a placement that is no partition of its roles. `evaluator`
/// replaces the cost models' seconds and the reshard's; memory stays theirs. Throws Stopped
/// (cost_models/documents/stopped.h).
std::optional<PlanOutcome> make_plan(const PlanRequest& request, Problems& problems,
                                     const std::optional<Evaluator>& evaluator = std::nullopt,
                                     const std::stop_token& stop = {});

/// At most `most` changes, each of which makes something fit (nearest_fix.h); none where the
/// request contradicts itself.
std::vector<NearestFix> fixes_of(const PlanRequest& request, std::size_t most);

/// Every number of GPUs up to a node's, and up to 26 numbers of whole nodes with the cluster's.
std::vector<int> pareto_counts(const ClusterSpec& cluster);

/// Answers one request under changing settings: only what a change touches is worked out again.
/// Keeps prices and fronts; one thread.
class Planner {
 public:
  explicit Planner(const PlanRequest& request);
  ~Planner();

  /// As make_plan, with other settings, objective and GPU budget (0 = all of the cluster's). One
  /// that was stopped leaves its prices to the next.
  std::optional<PlanOutcome> plan(const FixedSettings& fixed, Objective objective,
                                  Problems& problems, const std::stop_token& stop = {});
  /// What speaks against these settings: empty where a plan has them, else the reasons as
  /// Infeasible has them. Problems, and nothing, where they contradict the request.
  std::vector<std::string> against(const FixedSettings& fixed, Problems& problems,
                                   const std::stop_token& stop = {});
  /// Plans on at most pareto_counts GPUs that no other beats in both GPUs and step, ascending.
  std::vector<Solution> pareto(const FixedSettings& fixed, Problems& problems,
                               const std::stop_token& stop = {});

  struct State;  // planner/explain/planner.cc

 private:
  std::unique_ptr<State> state_;
};

}  // namespace tessera
