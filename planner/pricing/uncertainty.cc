#include "planner/pricing/uncertainty.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "planner/pricing/solution_pricer.h"

namespace tessera {
namespace {

constexpr double kStep = 0.01;  // relative change of a constant

// Derivatives of the phases and the step of fixed layouts.
class Repricer {
 public:
  Repricer(const PlanRequest& request, const Solution& solution, const Deal& deal)
      : pricer_(request, solution, deal), base_(pricer_.price(request.calibration)) {}

  PricedPhases derivative(const Calibration& changed) {
    PricedPhases result = pricer_.price(changed);
    for (const Phase phase : kEveryPhase) {
      result.seconds[phase] = (result.seconds[phase] - base_.seconds[phase]) / kStep;
    }
    result.step_s = (result.step_s - base_.step_s) / kStep;
    return result;
  }

 private:
  SolutionPricer pricer_;
  PricedPhases base_;
};

bool is_zero(const PricedPhases& priced) {
  return priced.step_s == 0 && std::all_of(kEveryPhase.begin(), kEveryPhase.end(),
                                           [&](Phase phase) { return priced.seconds[phase] == 0; });
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
               std::size_t index, std::vector<PhaseSensitivity>& result) {
  CollectiveConstants curve = device.sample->collectives[index];
  const auto changed = [&](const auto& parts) {
    return with_change(all, device, [&](Calibration& one) {
      if (index >= one.collectives.size()) return;
      for (const auto& [suffix, part] : parts) part(one.collectives[index]) *= 1 + kStep;
    });
  };
  if (is_zero(repricer.derivative(changed(kCurveParts))))
    return;  // no group of the plan has this size
  for (const auto& each : kCurveParts) {
    if (each.second(curve) == 0) continue;
    const PricedPhases by = repricer.derivative(changed(std::array{each}));
    if (is_zero(by)) continue;
    result.push_back({device.prefix + name_of(curve) + each.first, by.seconds, by.step_s});
  }
}

void add_device(Repricer& repricer, const Calibration& all, const DeviceConstants& device,
                std::vector<PhaseSensitivity>& result) {
  const Calibration& calibration = *device.sample;
  for (const auto& [name, member] : kConstants) {
    const Constant& constant = calibration.*member;
    const bool of_memory =
        member == &Calibration::reserve_bytes || member == &Calibration::fragmentation;
    if (of_memory || constant.value == 0 || constant.error == 0) continue;
    const PricedPhases by = repricer.derivative(with_change(
        all, device, [&, member = member](Calibration& one) { (one.*member).value *= 1 + kStep; }));
    if (is_zero(by)) continue;
    result.push_back({device.prefix + std::string(name), by.seconds, by.step_s});
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
    const std::string name = name_of(curve);
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

std::vector<PhaseSensitivity> phase_sensitivities(const PlanRequest& request,
                                                  const Solution& solution, const Deal& deal) {
  Repricer repricer(request, solution, deal);
  std::vector<PhaseSensitivity> result;
  for (const DeviceConstants& device : devices_of(request.calibration)) {
    add_device(repricer, request.calibration, device, result);
  }
  return result;
}

std::vector<Sensitivity> step_sensitivities(const PlanRequest& request, const Solution& solution,
                                            const Deal& deal) {
  std::vector<Sensitivity> result;
  for (const PhaseSensitivity& each : phase_sensitivities(request, solution, deal)) {
    if (each.step != 0) result.push_back({each.of, each.step});
  }
  return result;
}

std::vector<Sensitivity> of_phase(std::span<const PhaseSensitivity> sensitivities, Phase phase) {
  std::vector<Sensitivity> result;
  for (const PhaseSensitivity& each : sensitivities) {
    if (each.phases[phase] != 0) result.push_back({each.of, each.phases[phase]});
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
