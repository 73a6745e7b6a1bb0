#include "simulator/learn/measured_run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cost_models/documents/problem.h"
#include "simulator/timeline/measured_phase.h"

namespace tessera {
namespace {

constexpr double kSlow = 1.25;             // times the median of later steps: still warming up
constexpr double kSingleStep = 0.05;       // deviation of a mean over one step
constexpr double kLeastDeviation = 0.003;  // of a mean: clocks of hosts, rounding in logs

const std::string kStepSeconds = "timing_s/step";

double seconds_of(const StepNumbers& step) { return number_of(step, kStepSeconds).value_or(0); }

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

MeasuredMean mean_of(const std::vector<double>& values) {
  MeasuredMean result;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) result.mean += value / count;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  if (values.size() > 1) result.spread = std::sqrt(squares / (count - 1));
  const double least = (values.size() > 1 ? kLeastDeviation : kSingleStep) * result.mean;
  result.deviation = std::max(least, result.spread / std::sqrt(count));
  return result;
}

// Mean over the steps that have the number; 0 where none has.
double mean_number(const std::vector<StepNumbers>& steps, const std::string& name) {
  std::vector<double> values;
  for (const StepNumbers& step : steps) {
    if (const auto value = number_of(step, name)) values.push_back(*value);
  }
  return values.empty() ? 0 : mean_of(values).mean;
}

double most_number(const std::vector<StepNumbers>& steps, const std::string& name) {
  double most = 0;
  for (const StepNumbers& step : steps) most = std::max(most, number_of(step, name).value_or(0));
  return most;
}

RunMemory memory_of(const std::vector<StepNumbers>& steps) {
  RunMemory memory;
  // verl 0.9.1 puts the worker's role before them (trainer/ppo/ray_trainer.py).
  const auto most = [&](const std::string& name) {
    return std::max(most_number(steps, name), most_number(steps, "actor/" + name));
  };
  memory.allocated_gib = most("perf/max_memory_allocated_gb");
  memory.reserved_gib = most("perf/max_memory_reserved_gb");
  for (const Phase phase : kEveryPhase) {
    const std::string name = "memory_gib/" + std::string(name_of(phase)) + "/device";
    memory.device_gib = std::max(memory.device_gib, most_number(steps, name));
  }
  return memory;
}

void take_lengths(MeasuredRun& run) {
  run.planned_lengths = run.plan.workload.response_tokens;
  run.prompt_mean = mean_number(run.steps, "prompt_length/mean");
  LengthFigures figures;
  figures.mean = mean_number(run.steps, "response_length/mean");
  if (figures.mean <= 0) return;
  figures.least = mean_number(run.steps, "response_length/min");
  figures.most = mean_number(run.steps, "response_length/max");
  figures.clipped = mean_number(run.steps, "response_length/clip_ratio");
  figures.sequences = static_cast<double>(run.plan.workload.sequences());
  run.plan.workload.response_tokens = fit_lengths(figures, run.planned_lengths.max);
  run.lengths_measured = true;
}

}  // namespace

std::size_t warm_up_steps(std::span<const StepNumbers> steps) {
  if (steps.size() < 2) return 0;
  std::size_t first = 1;
  while (2 * (first + 1) <= steps.size()) {
    std::vector<double> later;
    for (const StepNumbers& step : steps.subspan(first + 1)) later.push_back(seconds_of(step));
    if (seconds_of(steps[first]) <= kSlow * median(std::move(later))) break;
    ++first;
  }
  return first;
}

std::optional<MeasuredRun> measured_run(const std::string& name, Plan plan,
                                        std::vector<StepNumbers> steps,
                                        std::optional<std::size_t> warm_up, Problems& problems) {
  std::erase_if(steps, [](const StepNumbers& step) { return !(seconds_of(step) > 0); });
  const std::size_t left_out = warm_up.value_or(warm_up_steps(steps));
  if (steps.size() <= left_out) {
    problems.push_back(
        {name, kStepSeconds,
         std::to_string(steps.size()) + " steps, " + std::to_string(left_out) + " of them warm-up",
         "at least one step more", "--warm-up says how many are left out"});
    return std::nullopt;
  }
  MeasuredRun run{.name = name, .plan = std::move(plan), .warm_up = left_out};
  run.steps.assign(steps.begin() + static_cast<std::ptrdiff_t>(left_out), steps.end());
  run.memory = memory_of(run.steps);
  take_lengths(run);
  return run;
}

RunMeans means_of(const MeasuredRun& run, std::size_t first, std::size_t last) {
  RunMeans means{.steps = static_cast<std::int64_t>(last - first)};
  for (const Phase phase : kEveryPhase) {
    const bool planned =
        std::any_of(run.plan.schedule.begin(), run.plan.schedule.end(),
                    [&](const ScheduledCall& call) { return call.phase == phase; });
    if (!planned) continue;
    std::vector<double> values;
    for (std::size_t i = first; i < last; ++i) {
      if (const auto seconds = measured_seconds(run.steps[i], phase)) values.push_back(*seconds);
    }
    if (!values.empty()) means.phases.push_back({phase, mean_of(values)});
  }
  std::vector<double> steps;
  for (std::size_t i = first; i < last; ++i) steps.push_back(seconds_of(run.steps[i]));
  means.step = mean_of(steps);
  return means;
}

RunMeans means_of(const MeasuredRun& run) { return means_of(run, 0, run.steps.size()); }

}  // namespace tessera
