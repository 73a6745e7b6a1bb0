// A Plan in time: what every rank does when, what is idle, what communicates, how full it gets.
//
// Runs build_iteration's tasks and turns the run into a Timeline ("predicted") and its summary.
// Seconds are per step, bytes and shares per rank (index = global rank). Deterministic by seed; a
// pure function.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "simulator/engine/communication.h"
#include "simulator/engine/plan_tasks.h"
#include "simulator/rollout/tail.h"
#include "simulator/tasks/link_load.h"
#include "simulator/timeline/timeline.h"

namespace tessera {

struct Plan;

/// A task of the critical path.
struct PathTask {
  std::string name;
  Phase phase = Phase::gen;
  int step = 0;
  std::vector<int> ranks;
  std::int64_t start_ns = 0, end_ns = 0;
  std::int64_t slack_ns = 0;  // 0 but for chains of equal length
  bool operator==(const PathTask&) const = default;
};

/// What spans do not say of their task (Span::task).
struct TaskNote {
  /// The task at whose end it started; one without ranks or duration stands for what it waited for
  /// itself. -1: it waited for nothing.
  int awaited = -1;
  std::int64_t communication_ns = 0;  // of its duration; of a task on the compute stream
  bool operator==(const TaskNote&) const = default;
};

struct RankSummary {
  double idle_share = 0;      // of the whole run: no stream works
  double exposed_comm_s = 0;  // per step: communicates or copies while it does not compute
  std::int64_t peak_bytes = 0;
  Phase peak_phase = Phase::load;  // `load` = outside all phases
  bool operator==(const RankSummary&) const = default;
};

/// A call of one step: how much later it could have ended without delaying the end of all.
struct CallSlack {
  Phase phase = Phase::gen;
  int step = 0;
  std::int64_t start_ns = 0, end_ns = 0, slack_ns = 0;
  bool operator==(const CallSlack&) const = default;
};

/// What it costs that tasks share links (0 where no link serves several GPUs).
struct SharedLinks {
  bool any = false;         // some serve several GPUs: what crosses them ran as flows
  double step_s = 0;        // of a step: what it would take less if no flow had to share a link
  double waited_s = 0;      // of a step: what tasks took longer for it, over all of them
  double equal_step_s = 0;  // the step where every GPU always has its equal share, as plans count
  bool operator==(const SharedLinks&) const = default;
};

struct Simulation {
  Timeline timeline;
  std::map<Phase, double> phases_s;     // from the call's start to its end, mean over the steps
  std::map<Phase, double> phases_idle;  // share of the call's ranks' time in which they wait
  double step_s = 0;
  std::int64_t steps = 1;
  std::vector<PathTask> critical_path;  // in time order; tasks without duration left out
  std::vector<TaskNote> tasks;          // by Span::task
  std::vector<RankSummary> ranks;
  std::vector<ReplicaRollout> rollout;  // by step and replica
  std::vector<LinkLoad> links;          // simulator/tasks/link_load.h
  std::int64_t load_window_ns = 0;      // of LinkLoad::load
  SharedLinks shared;
  std::vector<CommunicationPart> communication;  // over all steps
  std::vector<CallSlack> calls;                  // step by step in the schedule's order

  /// Values of the rank that has most.
  double exposed_comm_s() const;
  std::int64_t peak_bytes() const;

  bool operator==(const Simulation&) const = default;
};

/// A Problem where the plan's price says that so many steps take longer than 1e9 s (of 9.2e9 that
/// integer nanoseconds hold, as draws are longer than the mean): constants that no machine has.
void check_duration(const Plan& plan, const Calibration& calibration, std::int64_t steps,
                    Problems& problems);

/// Precondition: as build_iteration, and check_duration has no Problem. Throws Stopped.
Simulation simulate(const Plan& plan, const Calibration& calibration,
                    const SimulationOptions& options = {});

}  // namespace tessera
