// A plan's promises under the names of metrics.jsonl, and the limits that no run of it can pass.
//
// Pure functions. Bounds: a reshard receives at least its lower bound over the fastest link that
// the cluster states; an update runs at most at the rate of the calibration's best GEMM; every
// token of a step is trained once at that rate on all GPUs.
#pragma once

#include "cost_models/calibration.h"
#include "simulator/rules/rules.h"

namespace tessera {

struct Plan;

/// timing_s/{step, phases}, perf/{throughput, mfu/actor, max_memory_allocated_gb,
/// memory_share (of the device), usable_memory_share (of what plans may fill)},
/// reshard/{seconds, bytes, gbps, share, traffic_ratio}, comm/share, timing_s/gen_share.
Expectation expectation_of(const Plan& plan, const Calibration& calibration);

/// Which times may be wrong by factors. Constants are rough where none was measured on the machine,
/// and those that are shipped are of processors, which differ so much, or of another device. Ranks
/// of processors share them with one another and with whatever else runs on their host: what was
/// measured of them in a quiet moment is no promise.
enum class RoughTimes {
  none,
  bounds,  // the plan says that its times are of measured constants; those that are here are rough
  shared,  // of measured constants, on processors
  all,
};
RoughTimes rough_times(const Plan& plan, const Calibration& calibration);

/// Leaves what does not depend on these times: bytes and memory, and predictions beside bounds.
void drop_times(Expectation& expectation, RoughTimes rough);

}  // namespace tessera
