// The load of every link over a run, from the tasks and their flows.
//
// Pure.
#pragma once

#include <cstdint>
#include <stop_token>
#include <vector>

#include "simulator/engine/plan_tasks.h"
#include "simulator/tasks/link_load.h"

namespace tessera {

/// `windows` of equal length from 0 to `end_ns`. What is no flow is spread evenly over its task; a
/// flow has its rates. Ascending links, those that nothing crosses left out.
/// Throws Stopped (cost_models/documents/stopped.h).
std::vector<LinkLoad> link_loads(const IterationTasks& tasks, const NetworkRun& run,
                                 std::int64_t end_ns, int windows,
                                 const std::stop_token& stop = {});

}  // namespace tessera
