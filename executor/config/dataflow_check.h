// Whether the executor can carry out a plan's calls: a workload may state a dataflow of its own.
//
// A call reads and makes what the executor's function of it does, whatever names the workload gives
// to that. Any dataflow runs in which every call finds what it reads; others are refused here.
#pragma once

#include <string>

#include "cost_models/documents/problem_list.h"
#include "executor/config/run_config.h"

namespace tessera {

struct Plan;

/// Problems of `file`, the plan's, for every call that another role or in another way carries out
/// than here, that comes before a call which it reads, or that a run cannot be without.
void check_dataflow(const Plan& plan, const RunConfig& config, const std::string& file,
                    Problems& problems);

}  // namespace tessera
