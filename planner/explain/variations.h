// What-if: the best plan for every combination of some fixed settings.
//
// Pure functions; a variation is one word per key, as --fix reads them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "planner/request/request.h"

namespace tessera {

/// "rollout.tp=1,2,4": one key and its values, as words "rollout.tp=1", ...
struct Variation {
  std::string key;
  std::vector<std::string> words;
};

/// Reads the words of --vary; keys that are named twice, lists with an empty or repeated value and
/// more than `most` combinations are Problems (values themselves are checked by parse_settings).
std::vector<Variation> parse_variations(std::span<const std::string> words, Problems& problems,
                                        std::size_t most = 4096);

struct VariedPlan {
  std::vector<std::string> words;  // one per variation
  PlanOutcome outcome;
};

/// One search per combination, the last variation fastest. Settings that contradict `request`'s own
/// or each other are Problems; nullopt then.
std::optional<std::vector<VariedPlan>> plan_variations(const PlanRequest& request,
                                                       const std::vector<Variation>& variations,
                                                       Problems& problems);

/// The plan that is best by the objective of the search, the first of equal ones; nullptr where no
/// row has a plan.
const Plan* best_of(const std::vector<VariedPlan>& plans);

/// A table: settings, step, by how much the objective is worse than the best row's, phases, memory,
/// layouts; "no plan: ..." where nothing fits.
std::string describe(const std::vector<VariedPlan>& plans);
/// The table's facts as a JSON list.
std::string to_json(const std::vector<VariedPlan>& plans);

}  // namespace tessera
