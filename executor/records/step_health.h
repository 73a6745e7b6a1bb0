// How well a step used the hardware, and whether its numbers are numbers.
//
// Torch-free. Source of the first two: verl 0.9.1, workers/engine_workers.py.
#pragma once

#include "executor/rl/experience.h"
#include "executor/rl/rows.h"

namespace tessera {

struct Plan;

/// Of all numbers of a step, equal on every rank:
/// perf/mfu/actor: 3 x the forward FLOPs of every sequence and epoch over timing_s/update_actor and
/// the stated bf16 peak of the actor's devices; left out where no peak is stated.
/// training/not_finite: how many of actor/* and critic/* are NaN or infinite.
/// training/skipped_updates: optimizer steps of actor and critic that were left out because their
/// gradient was not finite.
Metrics health_metrics(const Plan& plan, const Experience& experience, const Metrics& numbers);

/// Adds what follows from a step's `seconds` so far, in place of what is there of it:
/// timing_s/step, throughput_metrics, health_metrics, plan/predicted_step_s, plan/error_pct, and,
/// where weights were resharded, reshard/gbps: what the busiest rank received by the slowest one's
/// seconds.
void add_step_numbers(const Plan& plan, const Experience& experience, double seconds,
                      Metrics& numbers);

/// perf/cpu_memory_used_gb of this host, in GiB as verl counts; empty where /proc does not tell.
Metrics host_memory_metrics();

}  // namespace tessera
