// The reason why a plan was not chosen: the cost of a hand-written choice, or what makes it
// impossible.
//
// Pure functions over a plan that the search found; the same request is searched again with the
// choice fixed, so the answer is the best plan that has the choice, not the plan with one number
// replaced.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "cost_models/spec/units.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "planner/pricing/step_parts.h"
#include "planner/request/request.h"

namespace tessera {

struct WhyNot {
  std::vector<std::string> choice;         // the words, as --fix reads them
  PlanOutcome outcome;                     // the best plan with the choice, or why there is none
  Seconds extra_s;                         // step of that plan - step of the chosen plan
  std::map<Phase, Seconds> phase_extra_s;  // where they go
  std::vector<std::pair<StepPart, Seconds>> causes;  // what they are, as parts_apart says
  int gpus = 0;                                      // of that plan
  double worse = 0;  // by the plan's objective, as a part of its value
  /// Relative model error at which the choice would win: worse / (2 + worse); 1 = more GPUs where
  /// those are the objective.
  double margin = 0;
};

/// nullopt and Problems when the words contradict each other or the workload.
std::optional<WhyNot> why_not(const Plan& plan, const PlanRequest& request,
                              const std::vector<std::string>& choice, Problems& problems);

/// The binding rank, phase, class and bytes and the nearest fix; or the extra seconds by phase,
/// what changes in the layouts, and the margin.
std::string describe(const WhyNot& answer, const Plan& plan);
std::string to_json(const WhyNot& answer);

}  // namespace tessera
