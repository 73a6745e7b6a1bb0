// An iteration's row as `tessera plan` solves it: its cells fixed, the rest searched.
//
// Pure functions of evaluators for the row's requests (row_request.h). Ranks, tokens, sequences.
// Those who price rows hand `search_row` to the pricer: a sweep itself knows no search.
#pragma once

#include <optional>

#include "planner/pricing/evaluate.h"
#include "planner/request/solution.h"
#include "planner/sweep/sweep_row.h"

namespace tessera {

/// The best plan that agrees with the row, on exactly its GPUs: placements, layouts, batches, what
/// is offloaded and sequences at once are searched as make_plan does, over the space of the row's
/// engine. Layouts that only a row may ask for (degrees that divide nothing, tp over nodes) are
/// taken from completions.h. nullopt where nothing fits, or where training and generation share
/// GPUs of which one has more.
std::optional<Solution> search_row(CostEvaluator& costs, CostEvaluator& generating,
                                   const SweepRow& row);

}  // namespace tessera
