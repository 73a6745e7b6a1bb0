#include "simulator/learn/learned_runs.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "cost_models/spec/device/device_kind.h"
#include "cost_models/spec/enum_names.h"
#include "planner/pricing/plan_pricing.h"
#include "planner/pricing/solution_pricer.h"
#include "planner/request/plan_request.h"
#include "simulator/rules/plan_metrics.h"

namespace tessera {
namespace {

// Times below a part of the step are no evidence: clocks, calls of processes, rounding.
constexpr double kLeastShare = 0.002;
// Of processors whose steps differ by more other work takes a part that changes.
constexpr double kScatter = 0.1;

constexpr EnumNames kWorths = enum_names<LessonWorth>({{LessonWorth::better, "better"},
                                                       {LessonWorth::no_better, "no_better"},
                                                       {LessonWorth::nothing, "nothing"},
                                                       {LessonWorth::untold, "untold"},
                                                       {LessonWorth::noise, "noise"}});

// Some of a run's steps, and what they are priced with.
struct Part {
  const MeasuredRun* run = nullptr;
  RunMeans means;
  std::shared_ptr<SolutionPricer> pricer;
};
using Parts = std::vector<Part>;

std::shared_ptr<SolutionPricer> pricer_of(const Plan& plan, const Calibration& calibration) {
  const PlanRequest request = priced_request_of(plan, calibration);
  return std::make_shared<SolutionPricer>(request, solution_of(plan), deal_of(plan, request));
}

// Phases that are worth a look: those that take a part of the step, and have a price.
std::vector<MeasuredPhase> telling_phases(const Part& part, const PricedPhases& priced) {
  std::vector<MeasuredPhase> phases;
  for (const MeasuredPhase& each : part.means.phases) {
    const double least = kLeastShare / 2 * part.means.step.mean;
    if (each.seconds.mean > least && priced.seconds[each.phase] > 0) phases.push_back(each);
  }
  return phases;
}

LearnedConstants learn_from(const Parts& parts, const Calibration& base,
                            const LearnOptions& options) {
  std::vector<MeasuredQuantity> measured;
  std::vector<std::vector<MeasuredPhase>> phases;
  std::int64_t steps = 0;
  for (const Part& part : parts) {
    phases.push_back(telling_phases(part, part.pricer->price(base)));
    for (const MeasuredPhase& each : phases.back()) {
      const double small = kLeastShare * part.means.step.mean / each.seconds.mean;
      measured.push_back({part.run->name, std::string(name_of(each.phase)), each.seconds.mean,
                          std::hypot(each.seconds.deviation / each.seconds.mean, small)});
    }
    steps += part.means.steps;
  }
  const Predictor predict = [&](const Calibration& calibration) {
    std::vector<double> values;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const PricedPhases priced = parts[i].pricer->price(calibration);
      for (const MeasuredPhase& each : phases[i]) {
        values.push_back(priced.seconds[each.phase].value);
      }
    }
    return values;
  };
  const std::string origin = "tessera learn: " + std::to_string(parts.size()) +
                             (parts.size() == 1 ? " run, " : " runs, ") + std::to_string(steps) +
                             (steps == 1 ? " step" : " steps");
  return learn_constants(base, measured, predict, origin, options);
}

std::vector<FittedPhase> fitted_phases(const Part& part, const Calibration& before,
                                       const Calibration& after) {
  const PricedPhases then = part.pricer->price(before), now = part.pricer->price(after);
  std::vector<FittedPhase> phases;
  for (const MeasuredPhase& each : part.means.phases) {
    phases.push_back({std::string(name_of(each.phase)), each.seconds.mean, each.seconds.deviation,
                      then.seconds[each.phase].value, now.seconds[each.phase].value});
  }
  phases.push_back({"step", part.means.step.mean, part.means.step.deviation, then.step_s.value,
                    now.step_s.value});
  return phases;
}

// One run: the second half of its steps, learned from the first.
std::vector<HeldOut> hold_steps_out(const Part& whole, const Calibration& base,
                                    const LearnOptions& options) {
  const MeasuredRun& run = *whole.run;
  const std::size_t half = run.steps.size() / 2;
  if (half == 0) return {};
  const Part seen{&run, means_of(run, 0, half), whole.pricer};
  const Part held{&run, means_of(run, half, run.steps.size()), whole.pricer};
  const Calibration learned = learn_from({seen}, base, options).calibration;
  return {{run.name + ", steps from " + std::to_string(run.steps[half].step),
           fitted_phases(held, base, learned)}};
}

std::vector<HeldOut> hold_runs_out(const Parts& parts, const Calibration& base,
                                   const LearnOptions& options) {
  std::vector<HeldOut> held;
  for (std::size_t out = 0; out < parts.size(); ++out) {
    Parts others = parts;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(out));
    const Calibration learned = learn_from(others, base, options).calibration;
    held.push_back({parts[out].run->name, fitted_phases(parts[out], base, learned)});
  }
  return held;
}

// Bytes that the allocator reserved and never gave out, as a part of the device: the mean over
// runs. From four runs on their spread is the error; of fewer that of the base stays.
LearnedMemory learn_fragmentation(const std::vector<MeasuredRun>& runs, Calibration& calibration) {
  LearnedMemory memory{.before = calibration.fragmentation.value};
  std::vector<double> parts;
  for (const MeasuredRun& run : runs) {
    const double unused = run.memory.reserved_gib - run.memory.allocated_gib;
    const double device = gib(run.plan.cluster.device.memory);
    if (run.memory.allocated_gib > 0 && unused > 0 && device > 0) parts.push_back(unused / device);
  }
  memory.runs = static_cast<int>(parts.size());
  memory.after = memory.before;
  memory.error = calibration.fragmentation.error;
  if (parts.empty()) return memory;
  memory.after = 0;
  for (const double part : parts) memory.after += part / static_cast<double>(parts.size());
  if (parts.size() >= 4) {
    double squares = 0;
    for (const double part : parts) squares += (part - memory.after) * (part - memory.after);
    memory.error = std::sqrt(squares / static_cast<double>(parts.size() - 1)) / memory.after;
  }
  calibration.fragmentation = {memory.after, memory.error, true,
                               "tessera learn: reserved less allocated in " +
                                   std::to_string(memory.runs) +
                                   (memory.runs == 1 ? " run" : " runs")};
  return memory;
}

// The rates of the device's data sheet beside those that were learned.
void state_peaks(const DeviceSpec& device, std::vector<LearnedConstant>& constants) {
  for (LearnedConstant& each : constants) {
    if (each.name == "matmul_flop_per_s") each.peak = device.peak_bf16.value;
    const bool of_memory = each.name == "memory_bytes_per_s" || each.name == "stream_bytes_per_s";
    if (of_memory) each.peak = device.hbm.value;
  }
}

}  // namespace

HeldOutError held_out_error(const std::vector<HeldOut>& parts) {
  HeldOutError error;
  for (const HeldOut& part : parts) {
    const FittedPhase& step = part.phases.back();
    const auto count = static_cast<double>(parts.size());
    error.before += std::abs(step.before_s / step.measured_s - 1) / count;
    error.after += std::abs(step.after_s / step.measured_s - 1) / count;
  }
  return error;
}

std::string_view name_of(LessonWorth worth) { return kWorths[worth]; }

const FittedRun* noisy_run(const LearnedRuns& learned) {
  const auto noisy = std::find_if(
      learned.runs.begin(), learned.runs.end(),
      [](const FittedRun& run) { return run.on_processors && run.scatter > kScatter; });
  return noisy == learned.runs.end() ? nullptr : &*noisy;
}

LessonWorth worth_of(const LearnedRuns& learned) {
  if (noisy_run(learned) != nullptr) return LessonWorth::noise;
  const auto& constants = learned.learned.constants;
  if (std::none_of(constants.begin(), constants.end(),
                   [](const LearnedConstant& each) { return each.fate == ConstantFate::moved; })) {
    return LessonWorth::nothing;
  }
  if (learned.held_out.empty()) return LessonWorth::untold;
  const HeldOutError error = held_out_error(learned.held_out);
  return error.after < error.before ? LessonWorth::better : LessonWorth::no_better;
}

std::optional<Problem> unlearnable(const MeasuredRun& run) {
  if (!run.plan.cluster.groups.empty()) {
    return Problem{run.name, "cluster", "several GPU types", "a run on GPUs of one type", ""};
  }
  if (run.on_other_devices) {
    return Problem{run.name, "cluster",
                   why_times_are_not_judged(RoughTimes::other_device, run.plan),
                   "a run on the devices that its plan is for", ""};
  }
  return std::nullopt;
}

LearnedRuns learn_from_runs(const std::vector<MeasuredRun>& runs, const Calibration& base,
                            const LearnOptions& options) {
  Parts parts;
  for (const MeasuredRun& run : runs) {
    parts.push_back({&run, means_of(run), pricer_of(run.plan, base)});
  }
  LearnedRuns result;
  result.learned = learn_from(parts, base, options);
  state_peaks(runs.front().plan.cluster.device, result.learned.constants);
  result.held_out = parts.size() == 1 ? hold_steps_out(parts.front(), base, options)
                                      : hold_runs_out(parts, base, options);
  result.memory = learn_fragmentation(runs, result.learned.calibration);
  for (const Part& part : parts) {
    const MeasuredRun& run = *part.run;
    result.runs.push_back({run.name, fitted_phases(part, base, result.learned.calibration),
                           part.means.step.spread / part.means.step.mean,
                           is_cpu(run.plan.cluster.device), run.warm_up, run.of_other_plans,
                           part.means.steps, run.planned.response_tokens,
                           run.plan.workload.response_tokens, run.lengths_measured,
                           run.planned.prompt_tokens, run.prompt_mean, run.waits});
  }
  return result;
}

}  // namespace tessera
