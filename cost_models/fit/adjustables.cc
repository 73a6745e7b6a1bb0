// What of a calibration may be scaled, and how far each kind may be off before it is measured.
#include <algorithm>
#include <array>

#include "cost_models/fit/learned_constants.h"
#include "cost_models/spec/enum_names.h"

namespace tessera {
namespace {

constexpr auto kFates =
    enum_names<ConstantFate>({{ConstantFate::moved, "moved"},
                              {ConstantFate::agrees, "agrees"},
                              {ConstantFate::not_told_apart, "not_told_apart"},
                              {ConstantFate::open, "open"},
                              {ConstantFate::without_effect, "without_effect"}});

// Standard deviations of ln factor. Host times differ by a factor of three between software; rates
// of kernels by a third; a table of ratios by what kernels of two generations do.
constexpr double kHostTime = 1.1, kRate = 0.3, kRatios = 0.5, kCurve = 0.4, kFloor = 0.7;
constexpr double kFactor = 0.2;  // ratios of two times of the same kernels

constexpr std::array<Constant Calibration::*, 7> kHostTimes = {
    &Calibration::dispatch_s, &Calibration::backward_dispatch_s,
    &Calibration::call_s,     &Calibration::decode_step_s,
    &Calibration::handover,   &Calibration::software,
    &Calibration::serving};
constexpr std::array<Constant Calibration::*, 4> kFloors = {
    &Calibration::matmul_floor_s, &Calibration::attention_floor_s, &Calibration::kernel_floor_s,
    &Calibration::inter_latency_s};
constexpr std::array<Constant Calibration::*, 3> kFactors = {
    &Calibration::sustained, &Calibration::attention_backward, &Calibration::overlap_slowdown};

template <std::size_t count>
bool is_one_of(Constant Calibration::*member,
               const std::array<Constant Calibration::*, count>& members) {
  return std::find(members.begin(), members.end(), member) != members.end();
}

double prior_of(Constant Calibration::*member) {
  if (is_one_of(member, kHostTimes)) return kHostTime;
  if (is_one_of(member, kFloors)) return kFloor;
  return is_one_of(member, kFactors) ? kFactor : kRate;
}

bool is_of_memory(Constant Calibration::*member) {
  return member == &Calibration::reserve_bytes || member == &Calibration::fragmentation;
}

Adjustable of_table(const char* name, RatioTable Calibration::*member) {
  return {name, kRatios, [](const Calibration&) { return 1.0; },
          [member](Calibration& calibration, double factor) {
            for (double& ratio : (calibration.*member).ratio) ratio *= factor;
            (calibration.*member).measured = true;
          }};
}

// The whole curve's time.
Adjustable of_curve(const CollectiveConstants& curve, std::size_t index) {
  return {name_of(curve), std::max(kCurve, curve.error), [](const Calibration&) { return 1.0; },
          [index](Calibration& calibration, double factor) {
            CollectiveConstants& scaled = calibration.collectives[index];
            scaled.alpha_s.value *= factor;
            scaled.ramp_s.value *= factor;
            scaled.bandwidth.value /= factor;
          }};
}

}  // namespace

std::string_view name_of(ConstantFate fate) { return kFates[fate]; }

std::vector<Adjustable> adjustables(const Calibration& calibration) {
  std::vector<Adjustable> all;
  for (const auto& [name, member] : kConstants) {
    const Constant& constant = calibration.*member;
    if (is_of_memory(member) || !(constant.value > 0)) continue;
    all.push_back(
        {std::string(name), std::max(prior_of(member), constant.error),
         [member = member](const Calibration& one) { return (one.*member).value; },
         [member = member](Calibration& one, double factor) { (one.*member).value *= factor; }});
  }
  if (!calibration.prefill.ratio.empty()) {
    all.push_back(of_table("prefill_ratio", &Calibration::prefill));
  }
  if (!calibration.decode.ratio.empty()) {
    all.push_back(of_table("decode_ratio", &Calibration::decode));
  }
  for (std::size_t i = 0; i < calibration.collectives.size(); ++i) {
    all.push_back(of_curve(calibration.collectives[i], i));
  }
  return all;
}

}  // namespace tessera
