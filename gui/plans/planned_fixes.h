// SPDX-License-Identifier: GPL-3.0-or-later
// What can be changed about a question that nothing fits, with the plan that each change brings.
//
// Pure; any thread. Searches that take as long as planning does, several times.
#pragma once

#include <string>
#include <vector>

#include "cost_models/spec/units.h"
#include "gui/document/plan_query.h"
#include "planner/explain/infeasible.h"

namespace tessera::gui {

struct PlannedFix {
  std::string words;  // "rollout.tp=4 instead of rollout.tp=1"
  RequestChange change;
  Seconds step_s;  // of the best plan with it
  Bytes free;      // that its fullest rank leaves of what plans may use
  bool operator==(const PlannedFix& other) const { return words == other.words; }
};

/// The nearest first, at most four. Never throws.
std::vector<PlannedFix> planned_fixes(const PlanQuery& query);

}  // namespace tessera::gui
