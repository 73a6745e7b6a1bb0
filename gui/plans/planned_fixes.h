// SPDX-License-Identifier: GPL-3.0-or-later
// What can be changed about a question that nothing fits, with the plan that each change brings.
//
// Pure; any thread. Searches that take as long as planning does, several times.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "cost_models/spec/units.h"
#include "gui/document/plan_query.h"

namespace tessera::gui {

struct PlannedFix {
  std::string words;   // "rollout.tp=4 instead of rollout.tp=1"
  PlanQuery question;  // with the change
  Seconds step_s;      // of the best plan with it
  Bytes free;          // that its fullest rank leaves of what plans may use
  bool operator==(const PlannedFix& other) const { return words == other.words; }
};

/// The question on nodes that have all GPUs that the cluster states; nullopt where they do.
std::optional<PlanQuery> with_whole_nodes(const PlanQuery& query);

/// Whole nodes where they are not, then the nearest first, at most four. Never throws.
std::vector<PlannedFix> planned_fixes(const PlanQuery& query, const std::stop_token& stop = {});

}  // namespace tessera::gui
