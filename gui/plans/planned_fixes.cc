// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/plans/planned_fixes.h"

#include <exception>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/stopped.h"
#include "gui/document/plan_answer.h"
#include "gui/document/words.h"
#include "planner/explain/memory_fit.h"
#include "planner/explain/nearest_fix.h"
#include "planner/plan/plan.h"
#include "planner/pricing/memory_limit.h"

namespace tessera::gui {
namespace {

// Of the fullest rank, by what the line above the pictures says.
Bytes free_in(const Plan& plan, const Calibration& calibration) {
  const PlanFit fit = fit_of(plan, calibration);
  return fit.usable - fit.peak;
}

}  // namespace

std::optional<PlanQuery> with_whole_nodes(const PlanQuery& query) {
  Problems unheard;
  const auto cluster = cluster_of(query, unheard);
  const bool fewer = cluster && query.gpus_per_node > 0 && query.topology.empty() &&
                     query.gpus_per_node < cluster->gpus_per_node;
  if (!fewer) return std::nullopt;
  PlanQuery whole = query;
  whole.gpus_per_node = cluster->gpus_per_node;
  return whole;
}

std::vector<PlannedFix> planned_fixes(const PlanQuery& query, const std::stop_token& stop) {
  constexpr std::size_t kMost = 4;
  std::vector<PlannedFix> planned;
  try {
    Problems problems;
    const PlanRequest request = request_from(query, problems);
    if (!problems.empty()) return planned;
    KeptPlanner planner;
    const auto add = [&](const std::string& words, const PlanQuery& other) {
      end_if_stopped(stop);
      const PlanAnswer found = planner.answer(other);
      const auto* plan = std::get_if<SharedPlan>(&found.result);
      if (plan == nullptr || planned.size() == kMost) return;
      planned.push_back(
          {words, other, (*plan)->prediction.step_s, free_in(**plan, request.calibration)});
    };
    if (const auto whole = with_whole_nodes(query)) {
      const QString words = Words::tr("%1 GPUs per node instead of %2");
      add(words.arg(whole->gpus_per_node).arg(query.gpus_per_node).toStdString(), *whole);
    }
    for (const NearestFix& fix : fixes_of(request, kMost)) {
      add(fix.words, changed(query, fix.change));
    }
  } catch (const std::exception&) {
    // The answer says what is wrong.
  }
  return planned;
}

}  // namespace tessera::gui
