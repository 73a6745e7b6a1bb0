#include "simulator/engine/spread.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "cost_models/documents/check.h"
#include "planner/plan/plan.h"
#include "simulator/engine/role_costs.h"

namespace tessera {
namespace {

double quantile(const std::vector<double>& ascending, double share) {
  const double rank = share * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<std::size_t>(rank);
  const std::size_t above = std::min(below + 1, ascending.size() - 1);
  return ascending[below] +
         (ascending[above] - ascending[below]) * (rank - static_cast<double>(below));
}

Quantiles quantiles(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {quantile(values, 0.1), quantile(values, 0.5), quantile(values, 0.9)};
}

// Of a sample; 0 where one draw says nothing of it.
double deviation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

}  // namespace

StepSpread spread_over_draws(const Plan& plan, const Calibration& calibration,
                             const SimulationOptions& options, int draws) {
  TESSERA_CHECK(draws >= 1);
  PlanCosts costs(plan, calibration);
  std::vector<double> steps;
  std::map<Phase, std::vector<double>> phases;
  const double second = 1e9 * static_cast<double>(options.steps);
  SimulationOptions drawn = options;
  for (int draw = 0; draw < draws; ++draw, ++drawn.seed) {
    const IterationTasks tasks = build_iteration(plan, calibration, drawn, costs);
    const std::vector<TaskRun> runs = run(tasks).runs;
    const auto end_of = [&](TaskId id) { return runs[static_cast<std::size_t>(id)].end_ns; };
    std::int64_t end = 0;
    for (const TaskRun& one : runs) end = std::max(end, one.end_ns);
    steps.push_back(static_cast<double>(end) / second);
    std::map<Phase, double> seconds;
    for (const CallTasks& call : tasks.calls) {
      seconds[call.phase] += static_cast<double>(end_of(call.end) - end_of(call.start)) / second;
    }
    for (const auto& [phase, value] : seconds) phases[phase].push_back(value);
  }
  StepSpread spread{.draws = draws, .step_s = quantiles(steps), .phases_s = {}};
  for (const auto& [phase, values] : phases) spread.phases_s[phase] = quantiles(values);
  spread.draws_deviation_s = deviation(steps);
  spread.constants_deviation_s = plan.prediction.step_error_s;
  spread.deviation_s = std::hypot(spread.draws_deviation_s, spread.constants_deviation_s);
  return spread;
}

}  // namespace tessera
