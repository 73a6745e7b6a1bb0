// How fast a step was, under verl's names.
//
// Torch-free. Source: verl 0.9.1, trainer/ppo/metric_utils.py (compute_throughout_metrics,
// compute_timing_metrics).
#pragma once

#include <map>
#include <string>

#include "executor/rl/experience.h"
#include "executor/rl/rows.h"

namespace tessera {

/// perf/{total_num_tokens,time_per_step,throughput}, global_seqlen/{mean,max,min} and
/// timing_per_token_ms/* from `timing`, the step's timing_s/* numbers. Throughput counts prompt and
/// response tokens per second and GPU.
Metrics throughput_metrics(const Experience& experience,
                           const std::map<std::string, double>& timing, int gpus);

}  // namespace tessera
