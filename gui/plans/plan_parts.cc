// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/plans/plan_parts.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "cost_models/documents/stopped.h"
#include "planner/plan/plan.h"
#include "planner/pricing/plan_pricing.h"
#include "planner/request/plan_constants.h"
#include "planner/request/plan_request.h"

namespace tessera::gui {
namespace {

PricedStep priced_step(const Plan& plan, const Calibration& calibration) {
  const PlanRequest request = priced_request_of(plan, calibration);
  return {step_parts(plan, calibration),
          step_sensitivities(request, solution_of(plan), deal_of(plan, request)),
          std::make_shared<const Calibration>(calibration)};
}

}  // namespace

std::optional<Seconds> deviation_apart(const PricedStep& one, const PricedStep& other) {
  if (!one.constants || !other.constants) return std::nullopt;
  if (*one.constants == *other.constants) {
    return step_deviation(difference(one.sensitivities, other.sensitivities), *one.constants);
  }
  const Seconds first = step_deviation(one.sensitivities, *one.constants);
  const Seconds second = step_deviation(other.sensitivities, *other.constants);
  return Seconds{std::hypot(first.value, second.value)};
}

PartsByPlan parts_of(const std::vector<SharedPlan>& plans, const std::stop_token& stop) {
  PartsByPlan parts;
  for (const SharedPlan& plan : plans) {
    end_if_stopped(stop);
    try {
      Problems unheard;  // views say what they lack
      const auto constants = constants_of(*plan, unheard);
      if (constants) parts[plan] = priced_step(*plan, constants->calibration);
    } catch (const std::exception&) {
      // It is compared by its phases alone.
    }
  }
  return parts;
}

void PlanParts::want(const std::vector<SharedPlan>& plans) {
  if (plans == wanted_) return;
  const auto holds = [](const std::vector<SharedPlan>& all, const SharedPlan& plan) {
    return std::find(all.begin(), all.end(), plan) != all.end();
  };
  std::vector<SharedPlan> missing;
  for (const SharedPlan& plan : plans) {
    const bool looked_at = known_.contains(plan) || (!work_.isBusy() && holds(wanted_, plan));
    if (!looked_at && !holds(missing, plan)) missing.push_back(plan);
  }
  std::erase_if(known_, [&](const auto& each) { return !holds(plans, each.first); });
  wanted_ = plans;
  work_.cancel();
  if (missing.empty()) return;
  work_.start([missing](const std::stop_token& stop) { return parts_of(missing, stop); },
              [this](PartsByPlan found) {
                known_.merge(std::move(found));
                emit changed();
              });
}

const PricedStep* PlanParts::of(const SharedPlan& plan) const {
  const auto found = known_.find(plan);
  return found == known_.end() ? nullptr : &found->second;
}

}  // namespace tessera::gui
