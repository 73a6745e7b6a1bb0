// The price of one row of a sweep: its completions, the best of them, its numbers.
//
// Pure functions of evaluators for the row's requests (row_request.h). Times in seconds.
#pragma once

#include <string>

#include "planner/pricing/evaluate.h"
#include "planner/sweep/price.h"

namespace tessera {

/// `generating` prices what is generated at once (with_batches); `assumed` is told in the result's
/// `why`.
SweepResult price_row(CostEvaluator& costs, CostEvaluator& generating, const SweepRow& row,
                      const RowSearch& search, const std::string& assumed);

}  // namespace tessera
