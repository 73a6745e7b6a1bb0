// What a step takes in the long run under each schedule, what limits it, and who is idle meanwhile.
//
// Of the calls of a simulated step: their mean durations by the slowest cycle of waits, and the
// durations of drawn response lengths by an event run of many steps. No runner carries these
// schedules out: they say what one would gain. Pure functions of plain values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cost_models/calibration.h"
#include "simulator/engine/plan_tasks.h"
#include "simulator/schedules/call_graph.h"
#include "simulator/tasks/task_graph.h"

namespace tessera {

struct Plan;

using CallDurations = std::map<Phase, std::int64_t>;  // nanoseconds

/// The calls of a plan's step, alone from start to end.
struct CallTimes {
  CallRanks ranks;
  std::vector<CallDurations> draws;  // at least one, each of other response lengths
  std::vector<int> lent_ranks =
      {};  // trainers that generate, too; `gen` is the rollout's part then
  std::vector<std::int64_t> lent_ns = {};  // of each draw: their part, with all that it costs them
};

/// Of `draws` simulated steps, from the options' seed on. Precondition: as spread_over_draws.
CallTimes call_times(const Plan& plan, const Calibration& calibration,
                     const SimulationOptions& options, int draws);

/// The steps of a schedule as tasks, step by step in the step's order; a task's ranks are pools.
/// Step k has the durations of draw k modulo their number.
TaskGraph step_tasks(const CallGraph& graph, const std::vector<CallDurations>& draws, int steps,
                     const std::vector<std::int64_t>& lent_ns = {});

struct PoolUse {
  std::vector<int> ranks;
  double busy_s = 0, idle_s = 0;  // of a step
};

/// What idle trainers answer in a step, and what each of them pays for it.
struct LentShare {
  std::int64_t prompts = 0;       // of a step
  int replicas = 0;               // of the rollout's layout on the trainers' ranks
  std::int64_t sequences = 0;     // that such a replica decodes at once, as its memory allows
  double to_s = 0, back_s = 0;    // into the rollout's layout; its memory given back
  std::int64_t parked_bytes = 0;  // of a rank: optimizer states that wait in host memory meanwhile
};

struct SteadyState {
  StepSchedule schedule;
  double step_s = 0;             // of the mean durations
  std::vector<Phase> cycle;      // the calls that it waits for, each for the one before it
  std::int64_t cycle_steps = 0;  // steps that the cycle reaches back
  double drawn_step_s = 0;       // with the draws one after another
  double staleness = 0;          // updates that a response's weights lack when it is learned from
  std::int64_t most_staleness = 0;  // in that run
  std::vector<PoolUse> pools;       // by the mean durations
  std::int64_t copy_bytes = 0;      // weights that each rank of an asynchronous actor keeps besides
  LentShare lent;                   // 0 prompts: no trainer generates
};

/// Precondition: why_no_schedule is empty.
SteadyState steady_state(const Workload& workload, const CallTimes& times,
                         const StepSchedule& schedule);

/// A schedule that the ranks cannot run, or cannot lend trainers in.
struct RefusedSchedule {
  StepSchedule schedule;
  std::string why;
  bool lent = false;
};

struct ScheduleComparison {
  int draws = 0;
  std::vector<SteadyState> states;
  std::vector<RefusedSchedule> refused;
};

/// Synchronous, split, one step off, asynchronous with staleness 1, 2 and 4; where the rollout has
/// ranks of its own, those that do not stop for one another also with idle trainers lent to
/// generation (lent_rollout.h), as many prompts as make the step shortest.
ScheduleComparison compare_schedules(const Plan& plan, const Calibration& calibration,
                                     const SimulationOptions& options, int draws);

std::string to_text(const ScheduleComparison& comparison);
std::string to_json(const ScheduleComparison& comparison);

}  // namespace tessera
