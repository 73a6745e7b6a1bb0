#include "planner/pricing/solution_pricer.h"

#include <utility>

#include "planner/pricing/fixed.h"

namespace tessera {

SolutionPricer::SolutionPricer(const PlanRequest& request, Solution solution, const Deal& deal)
    : costs_(request, deal),
      solution_(std::move(solution)),
      schedule_(schedule_of(default_schedule(request.workload), solution_.placement,
                            solution_.policy_lag)),
      iteration_(schedule_, blocks_of(schedule_, solution_.placement)) {}

PricedPhases SolutionPricer::price(const Calibration& calibration) {
  costs_.recalibrate(calibration);
  PricedPhases priced;
  priced.seconds = iteration_seconds(costs_, solution_.choice, rollout_apart(solution_.placement));
  priced.step_s = iteration_.step_seconds(priced.seconds);
  return priced;
}

}  // namespace tessera
