// An iteration's row as `tessera plan` solves it: its cells fixed, the rest searched.
//
// Pure functions of evaluators for the row's requests (row_request.h). Ranks, tokens, sequences.
#pragma once

#include <optional>
#include <string>

#include "planner/pricing/evaluate.h"
#include "planner/request/describe.h"
#include "planner/request/settings.h"
#include "planner/request/solution.h"
#include "planner/sweep/sweep_row.h"

namespace tessera {

/// The words of --fix that say what the row's cells say; `longest`: tokens of a sequence. Where the
/// row names no engine, an empty cp, ep, gen_ep or gen_pp is 1 and an empty zero 1, as published
/// runs have them.
FixedSettings settings_of(const SweepRow& row, const ModelSpec& model, std::int64_t longest);

/// The best plan that agrees with the row, on exactly its GPUs: placements, layouts, batches, what
/// is offloaded and sequences at once are searched as make_plan does, over the space of the row's
/// engine. Layouts that only a row may ask for (degrees that divide nothing, tp over nodes) are
/// taken from completions.h. nullopt where nothing fits, or where training and generation share
/// GPUs of which one has more.
std::optional<Solution> best_iteration(CostEvaluator& costs, CostEvaluator& generating,
                                       const SweepRow& row);

/// What was chosen for the row's empty cells: "tp2 dp8 zero1 micro_batch=4 offload=all; gen_tp2;
/// rollout unmapped; 160 sequences decoded at once".
std::string chosen_text(const SweepRow& row, const Solution& solution, std::int64_t longest);

}  // namespace tessera
