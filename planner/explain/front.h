// A Pareto front, the best plan of each number of GPUs, as text and JSON: `tessera plan --pareto`.
//
// Pure functions; lines end with '\n'.
#pragma once

#include <string>
#include <vector>

#include "planner/request/request.h"
#include "planner/request/solution.h"

namespace tessera {

/// A Pareto front of GPUs against step, one line per plan with tokens/s/GPU, price of a step (where
/// the cluster states one) and layouts; and the same facts as a JSON object.
std::string describe_front(const std::vector<Solution>& front, const PlanRequest& request);
std::string front_json(const std::vector<Solution>& front, const PlanRequest& request);

}  // namespace tessera
