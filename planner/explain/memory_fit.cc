#include "planner/explain/memory_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "planner/engines/engine.h"
#include "planner/plan/amounts.h"
#include "planner/plan/plan.h"
#include "planner/pricing/memory_limit.h"
#include "planner/request/plan_value.h"
#include "planner/request/risk.h"

namespace tessera {
namespace {

// "98.4 %", with as many digits as tell the rest from nothing: "99.9981 %".
std::string probability_text(double probability) {
  const double rest = 100 * (1 - probability);
  if (rest < 100 * kLeastRisk) return "more than 99.9999 %";
  const int digits = rest < 1 ? std::min(6, 1 + static_cast<int>(std::ceil(-std::log10(rest)))) : 1;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f %%", digits, 100 * probability);
  return text.data();
}

std::string evidence_text(const Plan& plan) {
  const int measured = engine_named(plan.engine).memory.measured;
  if (measured == 0) return "nobody has measured the memory of engine " + plan.engine;
  return "error bar of " + std::to_string(measured) + " measured configurations";
}

std::string safer_text(const Plan& plan) {
  const SaferPlan& safer = plan.certificate.safer;
  if (!safer.used()) return {};
  const std::string aim = "  one step of safety, " + probability_text(1 - safer.risk) + ": ";
  if (safer.plan.step_s == 0) return aim + "no plan of this request fits so surely\n";
  const Priced other = priced(plan, safer.plan);
  const double worse = std::max(0.0, worse_by(plan, other));
  if (plan.prediction.fits >= 1 - safer.risk) return aim + "this plan has it\n";
  std::array<char, 32> behind{};
  std::snprintf(behind.data(), behind.size(), "+%.2f %%", 100 * worse);
  return aim + "costs " + behind.data() + " (" + value_text(plan, other) + "), " +
         safer.plan.description + "\n";
}

}  // namespace

// A plan's own probability. Beyond 99.9 % the normal distribution says more than measurements do,
// and beyond 99 % for an engine whose memory nobody has measured.
std::string fit_text(const Plan& plan, double probability) {
  const bool measured = engine_named(plan.engine).memory.measured > 0;
  if (probability <= (measured ? 0.999 : 0.99)) return probability_text(probability);
  return measured ? "more than 99.9 %" : "more than 99 %";
}

std::string describe_fit(const Plan& plan, const Calibration& calibration) {
  const PlanFit fit = fit_of(plan, calibration);
  return "  fits with " + fit_text(plan, fit.probability) + ": the device holds " +
         in_gib(fit.held) + " +- " + in_gib(fit.deviation) + " of " + in_gib(fit.device) +
         " then (" + evidence_text(plan) + ")\n" + safer_text(plan);
}

Node fit_node(const Plan& plan, const Calibration& calibration) {
  const PlanFit fit = fit_of(plan, calibration);
  const MemoryAccuracy& accuracy = engine_named(plan.engine).memory;
  Node root = map_node();
  add(root, "probability", node_of(fit.probability));
  add(root, "risk", node_of(risk_of(plan)));
  add(root, "held_bytes", node_of(fit.held));
  add(root, "deviation_bytes", node_of(fit.deviation));
  add(root, "device_bytes", node_of(fit.device));
  add(root, "measured", node_of(std::int64_t{accuracy.measured}));
  add(root, "source", node_of(accuracy.source));
  const SaferPlan& safer = plan.certificate.safer;
  if (!safer.used()) return root;
  Node other = map_node();
  add(other, "risk", node_of(safer.risk));
  const bool any = safer.plan.step_s > 0;
  add(other, "feasible", node_of(any));
  if (any) {
    add(other, "fits", node_of(safer.fits));
    add(other, "step_s", node_of(safer.plan.step_s));
    add(other, "worse_by", node_of(std::max(0.0, worse_by(plan, priced(plan, safer.plan)))));
    add(other, "description", node_of(safer.plan.description));
  }
  add(root, "safer", std::move(other));
  return root;
}

}  // namespace tessera
