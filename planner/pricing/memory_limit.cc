#include "planner/pricing/memory_limit.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "cost_models/spec/node_groups.h"
#include "planner/engines/engine.h"
#include "planner/plan/amounts.h"
#include "planner/plan/plan.h"
#include "planner/request/request.h"
#include "planner/request/risk.h"

namespace tessera {
namespace {

// The probability that a standard normal number is above z.
double above(double z) { return 0.5 * std::erfc(z / std::numbers::sqrt2); }

// The z that a standard normal number is above with probability `risk`, at most one half. `above`
// falls and is convex from 0 on, so Newton's steps from 0 approach the root from one side.
double quantile_above(double risk) {
  double z = 0;
  for (int round = 0; round < 64; ++round) {
    const double density = std::exp(-z * z / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    const double step = (above(z) - risk) / density;
    z += step;
    if (std::abs(step) < 1e-14) break;
  }
  return z;
}

double mean_of(const MemoryError& error, double roles) {
  return error.growth * roles + error.beside;
}

double deviation_at(const MemoryError& error, double roles) {
  return std::hypot(error.deviation * roles, error.beside_deviation);
}

MemoryError memory_error(const PlanRequest& request) {
  return memory_error(request.cluster, request.calibration,
                      request.memory.value_or(engine_named(request.engine).memory));
}

MemoryError memory_error(const Plan& plan, const Calibration& calibration, int view) {
  return memory_error(seen_from(plan.cluster, view), seen_from(calibration, view),
                      engine_named(plan.engine).memory);
}

// Bytes of the roles that share a pool, in the phase in which they are most.
Bytes fullest(const Plan& plan, const std::vector<Role>& block) {
  Bytes most;
  for (const ScheduledCall& call : plan.schedule) {
    Bytes sum;
    for (const Role role : block) {
      const RolePlan& own = *plan.find(role);
      const auto use = own.memory.find(call.phase);
      if (use != own.memory.end()) sum += use->second.total();
    }
    most = std::max(most, sum);
  }
  return most;
}

double deviations_of_room(const PlanFit& fit) {
  return static_cast<double>((fit.device - fit.held).value) /
         std::max(1.0, static_cast<double>(fit.deviation.value));
}

PlanFit fit_at(const MemoryError& error, Bytes peak) {
  const Bytes roles = peak - Bytes{static_cast<std::int64_t>(error.reserve)};
  return {fit_probability(error, roles), peak,
          Bytes{static_cast<std::int64_t>(mean_of(error, static_cast<double>(roles.value)))},
          deviation_of(error, roles), Bytes{static_cast<std::int64_t>(error.device)}};
}

}  // namespace

MemoryError memory_error(const ClusterSpec& cluster, const Calibration& calibration,
                         const MemoryAccuracy& accuracy) {
  MemoryError error;
  error.device = static_cast<double>(cluster.device.memory.value);
  error.growth = 1 + accuracy.bias;
  error.deviation = accuracy.deviation;
  error.reserve = calibration.reserve_bytes.value;
  error.fragments = calibration.fragmentation.value * error.device;
  error.beside = error.reserve + error.fragments;
  error.beside_deviation = std::hypot(calibration.reserve_bytes.error * error.reserve,
                                      calibration.fragmentation.error * error.fragments);
  const bool on_cores = !calibration.overlapped_dispatch;
  if (on_cores || cluster.gpus() == 1) return error;
  error.beside += static_cast<double>(accuracy.outside.value);
  error.beside_deviation =
      std::hypot(error.beside_deviation, static_cast<double>(accuracy.outside_deviation.value));
  return error;
}

// growth u + z sqrt((deviation u)^2 + beside_deviation^2) = room, solved for u: the smaller root of
// the quadratic that squaring makes of it.
Bytes most_bytes(const MemoryError& error, double risk) {
  const double z = quantile_above(risk);
  const double room = error.device - error.beside;
  const double spread = z * error.deviation, fixed = z * error.beside_deviation;
  const double a = error.growth * error.growth - spread * spread;
  if (room <= fixed || a <= 0) return {};
  const double root = std::sqrt(spread * spread * room * room + fixed * fixed * a);
  return Bytes{static_cast<std::int64_t>((error.growth * room - root) / a)};
}

double fit_probability(const MemoryError& error, Bytes roles) {
  const auto counted = static_cast<double>(roles.value);
  const double room = error.device - mean_of(error, counted);
  const double deviation = deviation_at(error, counted);
  if (deviation <= 0) return room >= 0 ? 1 : 0;
  return above(-room / deviation);
}

Bytes deviation_of(const MemoryError& error, Bytes roles) {
  return Bytes{static_cast<std::int64_t>(deviation_at(error, static_cast<double>(roles.value)))};
}

Bytes reserve_of(const PlanRequest& request) {
  return Bytes{static_cast<std::int64_t>(request.calibration.reserve_bytes.value)};
}

Bytes memory_limit(const PlanRequest& request, double risk) {
  return most_bytes(memory_error(request), risk);
}

Bytes memory_limit(const PlanRequest& request) { return memory_limit(request, request.risk); }

Bytes usable_memory(const PlanRequest& request) {
  return std::min(memory_limit(request) + reserve_of(request), request.cluster.device.memory);
}

Bytes usable_memory(const Plan& plan, const Calibration& calibration, int view) {
  const MemoryError error = memory_error(plan, calibration, view);
  return most_bytes(error, risk_of(plan)) + Bytes{static_cast<std::int64_t>(error.reserve)};
}

Bytes usable_memory_of_rank(const Plan& plan, const Calibration& calibration, int rank) {
  const int view = plan.cluster.groups.empty() ? 0 : view_of(plan.cluster, std::vector<int>{rank});
  return usable_memory(plan, calibration, view);
}

MemoryMargin margin_of(const PlanRequest& request) {
  const MemoryError error = memory_error(request);
  const Bytes roles = memory_limit(request);
  const auto bytes = [](double amount) { return Bytes{static_cast<std::int64_t>(amount)}; };
  MemoryMargin margin;
  margin.fragments = bytes(error.fragments);
  margin.outside = bytes(error.beside - error.fragments - error.reserve);
  margin.account = bytes((error.growth - 1) * static_cast<double>(roles.value));
  margin.safety = bytes(error.device - error.reserve) - roles - margin.fragments - margin.outside -
                  margin.account;
  return margin;
}

double fit_probability(const PlanRequest& request, Bytes roles) {
  return fit_probability(memory_error(request), roles);
}

std::string of_usable(const PlanRequest& request, Bytes bytes) {
  return in_gib(bytes + reserve_of(request)) + " of " + in_gib(usable_memory(request));
}

PlanFit fit_of(const Plan& plan, const Calibration& calibration) {
  if (plan.cluster.groups.empty()) {
    PlanFit fit = fit_at(memory_error(plan, calibration, 0), plan.prediction.peak_bytes);
    fit.usable = usable_memory(plan, calibration);
    return fit;
  }
  // Many pools may fit as surely as numbers can tell: the one with the least room in deviations.
  std::optional<PlanFit> least;
  for (const std::vector<Role>& block : placement_of(plan)) {
    const int view = view_of(plan.cluster, plan.find(block.front())->ranks);
    PlanFit own = fit_at(memory_error(plan, calibration, view), fullest(plan, block));
    own.usable = usable_memory(plan, calibration, view);
    if (!least || deviations_of_room(own) < deviations_of_room(*least)) least = own;
  }
  return *least;
}

}  // namespace tessera
