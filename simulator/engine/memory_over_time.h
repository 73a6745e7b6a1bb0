// Bytes in use on every rank over a run, by class.
//
// Every role on a rank keeps its resident classes throughout; a call adds what its phase needs, a
// training call its activations while micro-batches are in flight. A micro-batch counts with its
// token limit, as in the plan, so that peaks are comparable. The classes reserve, communication and
// reshard are those that the plan states. Pure functions.
#pragma once

#include <stop_token>
#include <vector>

#include "simulator/engine/plan_tasks.h"
#include "simulator/engine/role_costs.h"

namespace tessera {

struct Plan;

/// Sorted by (rank, time); at most one sample per rank and time.
/// Throws Stopped (cost_models/documents/stopped.h).
std::vector<MemorySample> memory_over_time(const Plan& plan, const PlanCosts& costs,
                                           const IterationTasks& tasks,
                                           const std::vector<TaskRun>& runs,
                                           const std::stop_token& stop = {});

}  // namespace tessera
