#include "planner/pricing/uncertainty.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "planner/pricing/evaluate.h"
#include "planner/pricing/fixed.h"
#include "planner/pricing/iteration.h"
#include "planner/request/solution.h"

namespace tessera {
namespace {

constexpr double kStep = 0.01;  // relative change of a constant

// The step of fixed layouts under other constants.
class Repricer {
 public:
  Repricer(const PlanRequest& request, const Solution& solution, const Deal& deal)
      : costs_(request, deal),
        solution_(solution),
        schedule_(schedule_of(default_schedule(request.workload), solution.placement,
                              solution.policy_lag)),
        iteration_(schedule_, blocks_of(schedule_, solution.placement)),
        base_(step()) {}

  Seconds derivative(const Calibration& changed) {
    costs_.recalibrate(changed);
    return (step() - base_) / kStep;
  }

 private:
  Seconds step() {
    return iteration_.step_seconds(
        iteration_seconds(costs_, solution_.choice, rollout_apart(solution_.placement)));
  }

  CostEvaluator costs_;
  const Solution& solution_;
  std::vector<ScheduledCall> schedule_;
  Iteration iteration_;
  Seconds base_;
};

std::string curve_name(const CollectiveConstants& curve) {
  return std::string(name_of(curve.collective)) + "/" + std::to_string(curve.ranks) + "x" +
         std::to_string(curve.nodes);
}

constexpr std::pair<const char*, double& (*)(CollectiveConstants&)> kCurveParts[] = {
    {".alpha_s", [](CollectiveConstants& curve) -> double& { return curve.alpha_s.value; }},
    {".bytes_per_s", [](CollectiveConstants& curve) -> double& { return curve.bandwidth.value; }},
    {".ramp_s", [](CollectiveConstants& curve) -> double& { return curve.ramp_s.value; }}};

// The calibrations of one device among those of a cluster's views: one error moves them all. Of one
// GPU type it is the calibration itself, without a prefix.
struct DeviceConstants {
  std::string prefix;
  const Calibration* sample = nullptr;
};

std::vector<DeviceConstants> devices_of(const Calibration& calibration) {
  if (calibration.views.empty()) return {{"", &calibration}};
  std::vector<DeviceConstants> devices;
  for (const Calibration& view : calibration.views) {
    const std::string prefix = view.device + ": ";
    const bool known = std::any_of(devices.begin(), devices.end(),
                                   [&](const auto& each) { return each.prefix == prefix; });
    if (!known) devices.push_back({prefix, &view});
  }
  return devices;
}

/// `change` applied to the constants of a device, wherever they stand.
template <class Change>
Calibration with_change(const Calibration& calibration, const DeviceConstants& device,
                        const Change& change) {
  Calibration changed = calibration;
  const std::string name = device.sample->device;
  if (changed.device == name) change(changed);
  for (Calibration& view : changed.views) {
    if (view.device == name) change(view);
  }
  return changed;
}

void add_curve(Repricer& repricer, const Calibration& all, const DeviceConstants& device,
               std::size_t index, std::vector<Sensitivity>& result) {
  CollectiveConstants curve = device.sample->collectives[index];
  const auto changed = [&](const auto& parts) {
    return with_change(all, device, [&](Calibration& one) {
      if (index >= one.collectives.size()) return;
      for (const auto& [suffix, part] : parts) part(one.collectives[index]) *= 1 + kStep;
    });
  };
  if (repricer.derivative(changed(kCurveParts)) == 0) return;  // no group of the plan has this size
  for (const auto& each : kCurveParts) {
    if (each.second(curve) == 0) continue;
    const Seconds seconds = repricer.derivative(changed(std::array{each}));
    if (seconds != 0) {
      result.push_back({device.prefix + curve_name(curve) + each.first, seconds});
    }
  }
}

void add_device(Repricer& repricer, const Calibration& all, const DeviceConstants& device,
                std::vector<Sensitivity>& result) {
  const Calibration& calibration = *device.sample;
  for (const auto& [name, member] : kConstants) {
    const Constant& constant = calibration.*member;
    const bool of_memory =
        member == &Calibration::reserve_bytes || member == &Calibration::fragmentation;
    if (of_memory || constant.value == 0 || constant.error == 0) continue;
    const Seconds seconds = repricer.derivative(with_change(
        all, device, [&, member = member](Calibration& one) { (one.*member).value *= 1 + kStep; }));
    if (seconds != 0) result.push_back({device.prefix + std::string(name), seconds});
  }
  for (std::size_t i = 0; i < calibration.collectives.size(); ++i) {
    add_curve(repricer, all, device, i, result);
  }
}

double variance_of(const std::map<std::string, double>& by_name, const DeviceConstants& device) {
  const Calibration& calibration = *device.sample;
  const auto of = [&](const std::string& name) {
    const auto found = by_name.find(device.prefix + name);
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
  return variance;
}

}  // namespace

std::vector<Sensitivity> step_sensitivities(const PlanRequest& request, const Solution& solution,
                                            const Deal& deal) {
  Repricer repricer(request, solution, deal);
  std::vector<Sensitivity> result;
  for (const DeviceConstants& device : devices_of(request.calibration)) {
    add_device(repricer, request.calibration, device, result);
  }
  return result;
}

Seconds step_deviation(std::span<const Sensitivity> sensitivities, const Calibration& calibration) {
  std::map<std::string, double> by_name;
  for (const Sensitivity& each : sensitivities) by_name[each.of] += each.seconds.value;
  double variance = 0;
  for (const DeviceConstants& device : devices_of(calibration)) {
    variance += variance_of(by_name, device);
  }
  return Seconds{std::sqrt(std::max(0.0, variance))};
}

std::vector<Sensitivity> difference(std::span<const Sensitivity> a,
                                    std::span<const Sensitivity> b) {
  std::vector<Sensitivity> result(a.begin(), a.end());
  for (const Sensitivity& each : b) result.push_back({each.of, -each.seconds});
  return result;
}

}  // namespace tessera
