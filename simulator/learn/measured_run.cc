#include "simulator/learn/measured_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <span>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/device/device_kind.h"
#include "planner/engines/engine.h"
#include "planner/plan/certified.h"
#include "planner/plan/schedule.h"
#include "simulator/rules/plan_metrics.h"
#include "simulator/timeline/measured_phase.h"
#include "simulator/timeline/step_order.h"

namespace tessera {
namespace {

constexpr const char* kProgramSeconds = "reward/exposed_s";  // of runs that have programs
constexpr double kSlow = 1.25;        // times the median of later steps: still warming up
constexpr double kRounding = 0.5;     // tokens by which a mean of whole numbers may be off
constexpr double kLongest = 1 << 30;  // tokens of a prompt

const std::string kStepSeconds = "timing_s/step";

double seconds_of(const StepNumbers& step) { return number_of(step, kStepSeconds).value_or(0); }

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Mean over the steps that have the number.
std::optional<double> mean_number(const std::vector<StepNumbers>& steps, const std::string& name) {
  std::vector<double> values;
  for (const StepNumbers& step : steps) {
    if (const auto value = number_of(step, name)) values.push_back(*value);
  }
  if (values.empty()) return std::nullopt;
  return mean_of(values).mean;
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

// False and a Problem where the figure is above what the plan allows.
bool within(const std::string& run, const std::string& name, std::optional<double> tokens,
            double limit, const char* of, Problems& problems) {
  if (tokens.value_or(0) <= limit + kRounding) return true;
  std::array<char, 64> found{}, allowed{};
  std::snprintf(found.data(), found.size(), "%.0f tokens", *tokens);
  std::snprintf(allowed.data(), allowed.size(), "at most %.0f, %s", limit, of);
  problems.push_back({run, name, found.data(), allowed.data(), "the plan is not the one that ran"});
  return false;
}

// The part of responses that the limit ended; nullopt where no step says. verl's V1 trainer logs as
// response_length/clip_ratio the part that is as long as the batch's longest
// (trainer/ppo/v1/trainer_base.py pads to that), so that it is none where the longest ended before.
std::optional<double> clipped_part(const std::vector<StepNumbers>& steps, double limit) {
  std::vector<double> parts;
  for (const StepNumbers& step : steps) {
    const auto ratio = number_of(step, "response_length/clip_ratio");
    const double longest = number_of(step, "response_length/max").value_or(limit);
    if (ratio) parts.push_back(longest < limit - kRounding ? 0 : *ratio);
  }
  if (parts.empty()) return std::nullopt;
  return mean_of(parts).mean;
}

// Numbers that the run does not have leave the plan's.
bool take_lengths(MeasuredRun& run, Problems& problems) {
  Workload& workload = run.plan.workload;
  run.planned = workload;
  const auto mean_of_run = [&](const char* name) { return mean_number(run.steps, name); };
  run.prompt_mean = mean_of_run("prompt_length/mean").value_or(0);
  LengthFigures figures;
  figures.mean = mean_of_run("response_length/mean").value_or(0);
  figures.least = mean_of_run("response_length/min");
  figures.most = mean_of_run("response_length/max");
  const auto limit = static_cast<double>(run.planned.response_tokens.max);
  figures.clipped = clipped_part(run.steps, limit);
  figures.sequences = static_cast<double>(workload.sequences());
  const char* const of = "the longest response of the plan";
  const bool fits =
      within(run.name, "prompt_length/mean", run.prompt_mean, kLongest, "as any plan", problems) &&
      within(run.name, "response_length/mean", figures.mean, limit, of, problems) &&
      within(run.name, "response_length/max", figures.most, limit, of, problems);
  if (!fits) return false;
  if (run.prompt_mean > 0) {
    const std::int64_t mean = std::max<std::int64_t>(1, std::llround(run.prompt_mean));
    set_prompts(workload, mean, workload.longest_prompt());
  }
  run.lengths_measured = figures.mean > 0;
  if (run.lengths_measured)
    workload.response_tokens = fit_lengths(figures, run.planned.response_tokens);
  return true;
}

// The first of the run, and the first behind each restart.
std::vector<StepNumbers> without_warm_up(std::vector<LoggedStep> steps,
                                         std::optional<std::size_t> warm_up) {
  std::vector<double> seconds;
  for (const LoggedStep& step : steps) seconds.push_back(seconds_of(step.numbers));
  const std::size_t first = std::min(warm_up.value_or(warm_up_steps(seconds)), steps.size());
  const auto later = std::span(steps).subspan(first);
  const bool others = std::ranges::any_of(later, [](const auto& step) { return !step.restarted; });
  std::vector<StepNumbers> kept;
  for (LoggedStep& step : later) {
    if (warm_up || !others || !step.restarted) kept.push_back(std::move(step.numbers));
  }
  return kept;
}

// A folder's run may have gone on under another plan. Returns how many steps are left out.
std::size_t leave_out_other_plans(const Plan& plan, std::vector<LoggedStep>& steps) {
  const auto own = static_cast<double>(run_number(plan));
  return std::erase_if(steps, [&](const LoggedStep& step) {
    return number_of(step.numbers, kPlanNumber).value_or(own) != own;
  });
}

}  // namespace

bool is_compared(std::string_view name) {
  static constexpr std::array<std::string_view, 10> kRead{
      "timing_s/",      "perf/max_memory_", "actor/perf/max_memory_", "memory_gib/",
      "prompt_length/", "response_length/", "reshard/bytes",          kProgramSeconds,
      "plan/",          kStepsSinceStart};
  return std::any_of(kRead.begin(), kRead.end(),
                     [&](std::string_view part) { return name.starts_with(part); });
}

std::size_t warm_up_steps(std::span<const double> seconds) {
  if (seconds.size() < 2) return 0;
  std::size_t first = 1;
  while (2 * (first + 1) <= seconds.size()) {
    const auto later = seconds.subspan(first + 1);
    if (seconds[first] <= kSlow * median({later.begin(), later.end()})) break;
    ++first;
  }
  return first;
}

std::size_t warm_up_steps(std::span<const StepNumbers> steps) {
  std::vector<double> seconds;
  for (const StepNumbers& step : steps) seconds.push_back(seconds_of(step));
  return warm_up_steps(seconds);
}

std::optional<MeasuredRun> measured_run(const std::string& name, Plan plan,
                                        std::vector<StepNumbers> steps,
                                        std::optional<std::size_t> warm_up, Problems& problems) {
  std::erase_if(steps, [](const StepNumbers& step) { return !(seconds_of(step) > 0); });
  std::vector<LoggedStep> logged = in_order(steps);
  steps = {};
  MeasuredRun run{.name = name, .plan = std::move(plan)};
  run.of_other_plans = leave_out_other_plans(run.plan, logged);
  if (run.of_other_plans > 0 && logged.empty()) {
    problems.push_back({name, kPlanNumber,
                        std::to_string(run.of_other_plans) + " steps, all of them of other plans",
                        "a step that the folder's present plan ran", ""});
    return std::nullopt;
  }
  const std::size_t all = logged.size();
  run.steps = without_warm_up(std::move(logged), warm_up);
  run.warm_up = all - run.steps.size();
  if (run.steps.empty()) {
    problems.push_back({name, kStepSeconds,
                        std::to_string(all) + " steps, " + std::to_string(warm_up.value_or(0)) +
                            " of them warm-up",
                        "at least one step more", "--warm-up says how many are left out"});
    return std::nullopt;
  }
  run.memory = memory_of(run.steps);
  run.has_reward_programs = mean_number(run.steps, kProgramSeconds).has_value();
  const auto& last = run.steps.back().data;
  run.on_other_devices =
      ranks_on_processors({last.begin(), last.end()}) && !is_cpu(run.plan.cluster.device);
  const bool waits = engine_named(run.plan.engine).logs_wait_for_rollout;
  if (waits && is_one_step_off(run.plan.schedule)) run.waits = {Phase::gen};
  if (!take_lengths(run, problems)) return std::nullopt;
  return run;
}

RunMeans means_of(const MeasuredRun& run, std::size_t first, std::size_t last) {
  RunMeans means{.steps = static_cast<std::int64_t>(last - first)};
  const auto counted = std::span(run.steps).subspan(first, last - first);
  for (const Phase phase : kEveryPhase) {
    const bool planned =
        std::any_of(run.plan.schedule.begin(), run.plan.schedule.end(),
                    [&](const ScheduledCall& call) { return call.phase == phase; });
    if (!planned || std::count(run.waits.begin(), run.waits.end(), phase) > 0) continue;
    if (const auto time = phase_time(counted, phase)) {
      means.phases.push_back({phase, time->seconds});
    }
  }
  means.step = mean_of(step_seconds(counted));
  return means;
}

RunMeans means_of(const MeasuredRun& run) { return means_of(run, 0, run.steps.size()); }

}  // namespace tessera
