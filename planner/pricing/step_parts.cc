#include "planner/pricing/step_parts.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "planner/plan/phase_seconds.h"
#include "planner/plan/plan.h"
#include "planner/pricing/iteration.h"
#include "planner/pricing/plan_pricing.h"
#include "planner/pricing/role/role_pricer.h"
#include "planner/request/plan_request.h"

namespace tessera {
namespace {

PhaseSeconds predicted_seconds(const Plan& plan) {
  PhaseSeconds seconds;
  for (const auto& [phase, taken] : plan.prediction.phases_s) seconds[phase] = taken;
  return seconds;
}

// The prices of a phase's calls; nullopt where it runs no model.
std::optional<CallTime> call_of(CostEvaluator& costs, const Solution& solution, Phase phase) {
  for (const auto& [role, candidate] : solution.choice) {
    RolePricer& pricer = costs.pricer(role, candidate.view);
    const auto& phases = pricer.model().phases;
    if (std::find(phases.begin(), phases.end(), phase) == phases.end()) continue;
    return pricer.call_time(candidate, phase);
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(StepPart part) {
  switch (part) {
    case StepPart::communication:
      return "communication";
    case StepPart::bubble:
      return "pipeline bubble";
    case StepPart::host:
      return "host and copies";
    case StepPart::computation:
      break;
  }
  return "computation";
}

std::vector<Phase> longest_chain(const Plan& plan) {
  const PhaseSeconds seconds = predicted_seconds(plan);
  const Iteration iteration(plan.schedule, blocks_of(plan.schedule, placement_of(plan)));
  const PhaseSeconds starts = iteration.phase_starts(seconds);
  std::vector<Phase> left;
  for (const ScheduledCall& call : plan.schedule) left.push_back(call.phase);
  const auto end = [&](Phase phase) { return starts[phase] + seconds[phase]; };
  std::vector<Phase> chain;
  auto next =
      std::max_element(left.begin(), left.end(), [&](Phase a, Phase b) { return end(a) < end(b); });
  while (next != left.end()) {
    const Phase phase = chain.emplace_back(*next);
    left.erase(next);
    next = starts[phase] > 0 ? std::find_if(left.begin(), left.end(),
                                            [&](Phase one) { return end(one) == starts[phase]; })
                             : left.end();
  }
  return chain;
}

StepParts step_parts(const Plan& plan, const Calibration& calibration) {
  CostEvaluator costs = evaluator_of(plan, calibration);
  const Solution solution = solution_of(plan);
  const PhaseSeconds seconds = predicted_seconds(plan);
  StepParts parts;
  for (const Phase phase : longest_chain(plan)) {
    if (phase == Phase::reshard) {
      parts[StepPart::communication] += seconds[phase];
      continue;
    }
    const auto call = call_of(costs, solution, phase);
    if (!call) {
      parts[StepPart::host] += seconds[phase];
      continue;
    }
    parts[StepPart::communication] += call->whole.communication;
    parts[StepPart::bubble] += call->bubble;
    parts[StepPart::host] += call->host;
    parts[StepPart::computation] +=
        seconds[phase] - call->whole.communication - call->bubble - call->host;
  }
  return parts;
}

Seconds waited_for_front_end(const Plan& plan, const Calibration& calibration) {
  if (plan.find(Role::rollout) == nullptr) return {};
  PlanRequest request = priced_request_of(plan, calibration);
  const DecodeTraits& decode = request.traits.decode;
  if (decode.token_served == Seconds{} && decode.token_crowded == Seconds{}) return {};
  const Solution solution = solution_of(plan);
  const auto generation = [&] {
    CostEvaluator costs(request, deal_of(plan, request));
    const std::optional<CallTime> call = call_of(costs, solution, Phase::gen);
    return call ? call->whole.seconds : Seconds{};
  };
  const Seconds all = generation();
  request.traits.decode.token_served = request.traits.decode.token_crowded = {};
  return all - generation();
}

std::vector<std::pair<StepPart, Seconds>> parts_apart(const StepParts& one,
                                                      const StepParts& other) {
  std::vector<std::pair<StepPart, Seconds>> apart;
  for (const StepPart part : kEveryStepPart) apart.emplace_back(part, other[part] - one[part]);
  const auto size = [](const auto& each) { return std::abs(each.second.value); };
  std::stable_sort(apart.begin(), apart.end(),
                   [&](const auto& a, const auto& b) { return size(a) > size(b); });
  const double least = 0.01 * size(apart.front());
  std::erase_if(apart, [&](const auto& each) { return size(each) <= least; });
  return apart;
}

}  // namespace tessera
