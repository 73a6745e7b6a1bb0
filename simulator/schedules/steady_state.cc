#include "simulator/schedules/steady_state.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "cost_models/documents/check.h"
#include "planner/plan/plan.h"
#include "simulator/engine/role_costs.h"
#include "simulator/schedules/lent_rollout.h"

namespace tessera {
namespace {

constexpr int kLeastSteps = 64;  // of an event run, half of them until it is steady

double seconds(double nanoseconds) { return nanoseconds * 1e-9; }

std::int64_t mean_of(const std::vector<std::int64_t>& values) {
  double sum = 0;
  for (const std::int64_t value : values) sum += static_cast<double>(value);
  return values.empty() ? 0 : std::llround(sum / static_cast<double>(values.size()));
}

CallDurations mean_of(const std::vector<CallDurations>& draws) {
  CallDurations mean;
  for (const auto& [phase, unused] : draws.front()) {
    double sum = 0;
    for (const CallDurations& draw : draws) sum += static_cast<double>(draw.at(phase));
    mean[phase] = std::llround(sum / static_cast<double>(draws.size()));
  }
  return mean;
}

/// An event run of a schedule, asked step by step.
class StepRuns {
 public:
  StepRuns(const CallGraph& graph, const CallTimes& times)
      : graph_(graph),
        steps_(2 * std::max<int>(kLeastSteps / 2, static_cast<int>(times.draws.size()))) {
    runs_ = run(step_tasks(graph, times.draws, steps_, times.lent_ns));
  }

  /// Between the ends of steps of the second half, which has every draw.
  double step_s() const {
    const int half = steps_ / 2;
    return seconds(static_cast<double>(end_of(steps_ - 1) - end_of(half - 1)) / half);
  }

  /// Updates that had not ended when the weights of a step's responses were sent, of those that
  /// come before it is learned from.
  void add_staleness(const StepSchedule& schedule, SteadyState& state) const {
    const int update = call_number(graph_, Phase::update_actor), taken = weights_number(graph_);
    if (update < 0 || taken < 0) return;
    const int ahead = schedule.overlap == StepOverlap::one_step_off ? 1 : 0;
    const int half = steps_ / 2;
    std::int64_t sum = 0;
    for (int step = half; step < steps_; ++step) {
      const std::int64_t start = at(step - ahead, taken).start_ns;
      std::int64_t updates = 0;
      while (updates < step && at(static_cast<int>(updates), update).end_ns <= start) ++updates;
      sum += step - updates;
      state.most_staleness = std::max(state.most_staleness, step - updates);
    }
    state.staleness = static_cast<double>(sum) / half;
  }

 private:
  const TaskRun& at(int step, int call) const {
    return runs_[static_cast<std::size_t>(step) * graph_.calls.size() +
                 static_cast<std::size_t>(call)];
  }
  std::int64_t end_of(int step) const {
    std::int64_t end = 0;
    for (std::size_t call = 0; call < graph_.calls.size(); ++call) {
      end = std::max(end, at(step, static_cast<int>(call)).end_ns);
    }
    return end;
  }
  const CallGraph& graph_;
  int steps_;
  std::vector<TaskRun> runs_;
};

std::vector<PoolUse> pools_of(const CallGraph& graph, const CallDurations& mean,
                              std::int64_t lent_ns, double step_s) {
  std::vector<PoolUse> pools;
  for (std::size_t pool = 0; pool < graph.pools.size(); ++pool) {
    PoolUse use{.ranks = graph.pools[pool].ranks};
    for (const RepeatedCall& call : graph.calls) {
      if (std::binary_search(call.pools.begin(), call.pools.end(), static_cast<int>(pool))) {
        use.busy_s += seconds(static_cast<double>(call.lent ? lent_ns : mean.at(call.phase)));
      }
    }
    use.idle_s = std::max(0.0, step_s - use.busy_s);
    pools.push_back(std::move(use));
  }
  return pools;
}

}  // namespace

CallTimes call_times(const Plan& plan, const Calibration& calibration,
                     const SimulationOptions& options, int draws) {
  TESSERA_CHECK(draws >= 1);
  PlanCosts costs(plan, calibration);
  CallTimes times;
  SimulationOptions drawn = options;
  drawn.steps = 1;
  for (int draw = 0; draw < draws; ++draw, ++drawn.seed) {
    const IterationTasks tasks = build_iteration(plan, calibration, drawn, costs);
    const std::vector<TaskRun> runs = run(tasks).runs;
    CallDurations& durations = times.draws.emplace_back();
    for (const CallTasks& call : tasks.calls) {
      const auto end_of = [&](TaskId id) { return runs[static_cast<std::size_t>(id)].end_ns; };
      durations[call.phase] = end_of(call.end) - end_of(call.start);
      times.ranks[call.phase] = call.ranks;
    }
  }
  return times;
}

TaskGraph step_tasks(const CallGraph& graph, const std::vector<CallDurations>& draws, int steps,
                     const std::vector<std::int64_t>& lent_ns) {
  const int count = static_cast<int>(graph.calls.size());
  std::vector<std::vector<CallWait>> waits(graph.calls.size());
  for (const CallWait& wait : graph.waits)
    waits[static_cast<std::size_t>(wait.call)].push_back(wait);
  TaskGraph tasks;
  for (int step = 0; step < steps; ++step) {
    const std::size_t draw = static_cast<std::size_t>(step) % draws.size();
    for (std::size_t call = 0; call < graph.calls.size(); ++call) {
      Task task{.phase = graph.calls[call].phase, .ranks = graph.calls[call].pools};
      task.name = std::string(name_of(task.phase));
      task.duration_ns = graph.calls[call].lent ? lent_ns[draw] : draws[draw].at(task.phase);
      for (const CallWait& wait : waits[call]) {
        if (step >= wait.steps) task.after.push_back((step - wait.steps) * count + wait.on);
      }
      tasks.add(std::move(task));
    }
  }
  return tasks;
}

SteadyState steady_state(const Workload& workload, const CallTimes& times,
                         const StepSchedule& schedule) {
  const CallGraph graph = call_graph(workload, times.ranks, schedule, times.lent_ranks);
  const CallDurations mean = mean_of(times.draws);
  const std::int64_t lent = mean_of(times.lent_ns);
  const SlowestCycle slowest =
      slowest_cycle(static_cast<int>(graph.calls.size()), event_waits(graph, mean, lent));
  SteadyState state{.schedule = schedule,
                    .step_s = seconds(slowest.period_ns()),
                    .cycle = {},
                    .cycle_steps = slowest.steps};
  for (const int call : slowest.events) {
    state.cycle.push_back(graph.calls[static_cast<std::size_t>(call)].phase);
  }
  const StepRuns runs(graph, times);
  state.drawn_step_s = runs.step_s();
  runs.add_staleness(schedule, state);
  state.pools = pools_of(graph, mean, lent, state.step_s);
  return state;
}

namespace {

bool may_lend(const StepSchedule& schedule) { return schedule.overlap != StepOverlap::synchronous; }

/// The state with as many prompts lent as make the step shortest.
SteadyState with_lending(const Plan& plan, const CallTimes& times, const StepSchedule& schedule,
                         LentRollout& lender) {
  CallTimes one = times;  // the first draw chooses
  one.draws.resize(1);
  const auto step_s = [&](std::int64_t prompts) {
    return steady_state(plan.workload, lender.times(one, prompts), schedule).step_s;
  };
  const std::int64_t all = plan.workload.prompts_per_step;
  std::int64_t best = 0;
  double least = step_s(0);
  for (std::int64_t stride = std::max<std::int64_t>(1, all / 4); stride > 0; stride /= 2) {
    for (bool moved = true; moved;) {
      moved = false;
      for (const std::int64_t prompts : {best - stride, best + stride}) {
        if (prompts < 0 || prompts > all) continue;
        const double seconds = step_s(prompts);
        if (seconds >= least) continue;
        least = seconds;
        best = prompts;
        moved = true;
      }
    }
  }
  SteadyState state = steady_state(plan.workload, lender.times(times, best), schedule);
  state.lent = lender.share(best);
  return state;
}

}  // namespace

ScheduleComparison compare_schedules(const Plan& plan, const Calibration& calibration,
                                     const SimulationOptions& options, int draws) {
  constexpr std::array kSchedules{
      StepSchedule{StepOverlap::synchronous},     StepSchedule{StepOverlap::split},
      StepSchedule{StepOverlap::one_step_off},    StepSchedule{StepOverlap::asynchronous, 1},
      StepSchedule{StepOverlap::asynchronous, 2}, StepSchedule{StepOverlap::asynchronous, 4}};
  const CallTimes times = call_times(plan, calibration, options, draws);
  LentRollout lender(plan, calibration, options, times.ranks);
  ScheduleComparison comparison{.draws = draws, .states = {}, .refused = {}};
  for (const StepSchedule& schedule : kSchedules) {
    std::string why = why_no_schedule(times.ranks, schedule);
    const bool copies = schedule.overlap == StepOverlap::asynchronous;
    if (why.empty() && copies) why = lender.why_no_copy();
    if (!why.empty()) {
      comparison.refused.push_back({schedule, std::move(why)});
      continue;
    }
    const std::int64_t copy_bytes = copies ? lender.copy_bytes() : 0;
    comparison.states.push_back(steady_state(plan.workload, times, schedule));
    comparison.states.back().copy_bytes = copy_bytes;
    if (!may_lend(schedule)) continue;
    why = lender.why_not(copy_bytes);
    const SteadyState lent =
        why.empty() ? with_lending(plan, times, schedule, lender) : SteadyState{};
    if (why.empty() && lent.lent.prompts == 0) why = "no step gets shorter by it";
    if (why.empty()) {
      comparison.states.push_back(lent);
      comparison.states.back().copy_bytes = copy_bytes;
    } else {
      comparison.refused.push_back({schedule, std::move(why), true});
    }
  }
  return comparison;
}

}  // namespace tessera
