#include "planner/request/solution.h"

#include <numeric>

namespace tessera {

int Solution::gpus() const { return std::accumulate(sizes.begin(), sizes.end(), 0); }

double value_of(Objective objective, const Solution& solution) {
  if (objective == Objective::cost) return solution.step_s.value * solution.billed_gpus;
  return value_of(objective, solution.step_s, solution.gpus());
}

}  // namespace tessera
