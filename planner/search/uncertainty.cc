#include "planner/search/uncertainty.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "planner/search/fixed.h"

namespace tessera {
namespace {

constexpr double kStep = 0.01;  // relative change of a constant

// The step of fixed layouts under other constants.
class Repricer {
 public:
  Repricer(const PlanRequest& request, const Solution& solution)
      : costs_(request),
        solution_(solution),
        schedule_(schedule_of(default_schedule(request.workload), solution.placement,
                              solution.policy_lag)),
        iteration_(schedule_, blocks_of(schedule_, solution.placement)),
        base_(step()) {}

  double derivative(const Calibration& changed) {
    costs_.recalibrate(changed);
    return (step() - base_) / kStep;
  }

 private:
  double step() const {
    return iteration_.step_seconds(
        iteration_seconds(costs_, solution_.choice, rollout_apart(solution_.placement)));
  }

  CostEvaluator costs_;
  const Solution& solution_;
  std::vector<ScheduledCall> schedule_;
  Iteration iteration_;
  double base_;
};

std::string curve_name(const CollectiveConstants& curve) {
  return std::string(name_of(curve.collective)) + "/" + std::to_string(curve.ranks) + "x" +
         std::to_string(curve.nodes);
}

constexpr std::pair<const char*, double CollectiveConstants::*> kCurveParts[] = {
    {".alpha_s", &CollectiveConstants::alpha_s},
    {".bytes_per_s", &CollectiveConstants::bandwidth},
    {".ramp_s", &CollectiveConstants::ramp_s}};

void add_curve(Repricer& repricer, const Calibration& calibration, std::size_t index,
               std::vector<Sensitivity>& result) {
  Calibration changed = calibration;
  for (const auto& [suffix, part] : kCurveParts) changed.collectives[index].*part *= 1 + kStep;
  if (repricer.derivative(changed) == 0) return;  // no group of the plan has this size
  for (const auto& [suffix, part] : kCurveParts) {
    if (calibration.collectives[index].*part == 0) continue;
    changed = calibration;
    changed.collectives[index].*part *= 1 + kStep;
    const double seconds = repricer.derivative(changed);
    if (seconds != 0) {
      result.push_back({curve_name(calibration.collectives[index]) + suffix, seconds});
    }
  }
}

}  // namespace

std::vector<Sensitivity> step_sensitivities(const PlanRequest& request, const Solution& solution) {
  Repricer repricer(request, solution);
  const Calibration& calibration = request.calibration;
  std::vector<Sensitivity> result;
  for (const auto& [name, member] : kConstants) {
    const Constant& constant = calibration.*member;
    const bool of_memory =
        member == &Calibration::reserve_bytes || member == &Calibration::fragmentation;
    if (of_memory || constant.value == 0 || constant.error == 0) continue;
    Calibration changed = calibration;
    (changed.*member).value *= 1 + kStep;
    const double seconds = repricer.derivative(changed);
    if (seconds != 0) result.push_back({std::string(name), seconds});
  }
  for (std::size_t i = 0; i < calibration.collectives.size(); ++i) {
    add_curve(repricer, calibration, i, result);
  }
  return result;
}

double step_deviation(std::span<const Sensitivity> sensitivities, const Calibration& calibration) {
  std::map<std::string, double> by_name;
  for (const Sensitivity& each : sensitivities) by_name[each.of] += each.seconds;
  const auto of = [&](const std::string& name) {
    const auto found = by_name.find(name);
    return found == by_name.end() ? 0.0 : found->second;
  };
  double variance = 0;
  for (const auto& [name, member] : kConstants) {
    const double seconds = of(std::string(name)) * (calibration.*member).error;
    variance += seconds * seconds;
  }
  for (const CollectiveConstants& curve : calibration.collectives) {
    const std::string name = curve_name(curve);
    const double seconds =
        (of(name + ".alpha_s") + of(name + ".ramp_s") - of(name + ".bytes_per_s")) * curve.error;
    variance += seconds * seconds;
  }
  for (const FitCovariance& fit : calibration.covariances) {
    const std::size_t size = fit.of.size();
    for (std::size_t i = 0; i < size; ++i) {
      // A constant's own error is at least its fitted deviation and stands above already.
      const bool counted = std::any_of(kConstants.begin(), kConstants.end(),
                                       [&](const auto& known) { return known.name == fit.of[i]; });
      for (std::size_t j = 0; j < size; ++j) {
        if (i == j && counted) continue;
        variance += of(fit.of[i]) * of(fit.of[j]) * fit.relative[i * size + j];
      }
    }
  }
  return std::sqrt(std::max(0.0, variance));
}

std::vector<Sensitivity> difference(std::span<const Sensitivity> a,
                                    std::span<const Sensitivity> b) {
  std::vector<Sensitivity> result(a.begin(), a.end());
  for (const Sensitivity& each : b) result.push_back({each.of, -each.seconds});
  return result;
}

}  // namespace tessera
