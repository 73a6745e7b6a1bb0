// SPDX-License-Identifier: GPL-3.0-or-later
// The planner's answer to what the user asks; any thread.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "cost_models/documents/problem.h"
#include "gui/document/plan_query.h"
#include "gui/document/shared_plan.h"
#include "planner/explain/infeasible.h"
#include "planner/explain/planner.h"
#include "planner/plan/certificate.h"

namespace tessera::gui {

struct PlanAnswer {
  std::variant<Problems, Infeasible, SharedPlan> result;
  double seconds = 0;  // that the search took
};

/// Reads the files, searches. Never throws: what was stopped answers with a problem that nobody
/// hears.
PlanAnswer answer(const PlanQuery& query, const std::stop_token& stop = {});

/// Why no plan can answer a question whatever it fixes, fault by fault; empty where one may.
std::vector<std::string> refusal_of(PlanQuery query);

/// Answers as answer() does, and keeps prices: another setting on the same model, cluster and
/// workload is answered in a fraction of the time. Any thread; what is asked while another search
/// runs waits for its end.
class KeptPlanner {
 public:
  PlanAnswer answer(const PlanQuery& query, const std::stop_token& stop = {});
  /// What speaks against a question, reason by reason; empty: a plan answers it. Never throws.
  std::vector<std::string> against(const PlanQuery& query, const std::stop_token& stop = {});

 private:
  std::optional<PlanOutcome> replan(const PlanRequest& request, Problems& problems,
                                    const std::stop_token& stop);
  void keep(const PlanRequest& request);

  std::mutex busy_;  // over both
  PlanRequest request_;
  std::unique_ptr<Planner> planner_;
};

/// The whole plan of a runner-up of `plan`: a search with its settings fixed, which
/// plans of earlier versions do not state: Problems then.
PlanAnswer answer(const Plan& plan, const RunnerUp& other, const std::stop_token& stop = {});

}  // namespace tessera::gui
