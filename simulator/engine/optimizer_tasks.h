// The tasks of an optimizer step: per stage the reduction of gradients over the replicas, the
// update, and the gathering of parameters.
//
// What a stage's last backward pass hides of both has no time in the graph: it is told beside it
// (IterationTasks::hidden).
#pragma once

#include <vector>

#include "simulator/engine/pipeline_tasks.h"
#include "simulator/engine/plan_tasks.h"
#include "simulator/engine/role_costs.h"
#include "simulator/engine/task_links.h"

namespace tessera {

/// Behind the passes of a mini-batch; returns what ends it. `links` writes into the tasks' graph.
std::vector<TaskId> add_optimizer_step(IterationTasks& tasks, TaskLinks& links,
                                       const RoleCosts& costs, Phase phase, PassEnd pass);

}  // namespace tessera
