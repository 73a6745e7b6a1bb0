// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/plans/planned_fixes.h"

#include <exception>

#include "cost_models/documents/problem.h"
#include "gui/document/plan_answer.h"
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

std::vector<PlannedFix> planned_fixes(const PlanQuery& query) {
  constexpr std::size_t kMost = 4;
  std::vector<PlannedFix> planned;
  try {
    Problems problems;
    const PlanRequest request = request_from(query, problems);
    if (!problems.empty()) return planned;
    KeptPlanner planner;
    for (const NearestFix& fix : fixes_of(request, kMost)) {
      const PlanAnswer found = planner.answer(changed(query, fix.change));
      const auto* plan = std::get_if<SharedPlan>(&found.result);
      if (plan == nullptr) continue;
      planned.push_back({fix.words, fix.change, (*plan)->prediction.step_s,
                         free_in(**plan, request.calibration)});
    }
  } catch (const std::exception&) {
    // The answer says what is wrong.
  }
  return planned;
}

}  // namespace tessera::gui
