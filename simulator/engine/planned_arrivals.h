// When each rank of a plan's reshard has its weights.
//
// Of the exact transfers where the plan has them, else of what the plan states of its busiest rank;
// the engine's software included. Seconds and bytes; pure but for what the evaluator keeps.
#pragma once

#include <vector>

#include "cost_models/calibration.h"
#include "planner/pricing/evaluate.h"
#include "simulator/reshard/arrivals.h"

namespace tessera {

struct Plan;
struct PlannedReshard;

std::vector<Arrival> planned_arrivals(const Plan& plan, const PlannedReshard& pair,
                                      const Calibration& calibration, CostEvaluator& evaluator);

/// Both lists' ranks, ascending, each once.
std::vector<int> united(std::vector<int> ranks, const std::vector<int>& more);

}  // namespace tessera
