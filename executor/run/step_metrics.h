// The numbers of one step, under verl's names.
//
// Torch-free pure functions over the experience that every rank holds. Sources: verl 0.9.1,
// trainer/ppo/metric_utils.py (names and definitions).
#pragma once

#include <map>
#include <string>

#include "executor/rl/experience.h"
#include "executor/rl/rows.h"

namespace tessera {

/// critic/{score,rewards,advantages,returns,values}/{mean,max,min}, response_length/*,
/// prompt_length/*, global_seqlen/*, training/rollout_probs_diff_*; only what has been computed.
/// `max_response` is the limit at which responses are cut off.
Metrics experience_metrics(const Experience& experience, std::int64_t max_response);

/// perf/{total_num_tokens,time_per_step,throughput}, timing_per_token_ms/* from timing_s/*.
Metrics throughput_metrics(const Experience& experience,
                           const std::map<std::string, double>& timing, int gpus);

}  // namespace tessera
