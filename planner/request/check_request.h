// The contradictions of a request, found before any search.
//
// Pure functions; each contradiction is a Problem.
#pragma once

#include "cost_models/documents/problem_list.h"
#include "planner/request/request.h"

namespace tessera {

/// A Problem for every model whose positions are fewer than a sequence's tokens.
void check_lengths(const PlanRequest& request, Problems& problems);

/// Models, dataflow and GPUs that are there.
void check_models(const PlanRequest& request, Problems& problems);

/// Settings of roles that the workload has, and GPU types that the cluster has.
void check_settings(const PlanRequest& request, Problems& problems);

}  // namespace tessera
