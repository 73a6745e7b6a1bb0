// A plan's promises under the names of metrics.jsonl, and the limits that no run of it can pass.
//
// Pure functions. Bounds: a reshard receives at least its lower bound over the fastest link that
// the cluster states; an update runs at most at the rate of the calibration's best GEMM; every
// token of a step is trained once at that rate on all GPUs.
#pragma once

#include <string>
#include <string_view>

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
/// measured of them in a quiet moment is no promise. A plan for GPUs promises nothing of
/// processors.
enum class RoughTimes {
  none,
  bounds,  // the plan says that its times are of measured constants; those that are here are rough
  shared,  // of measured constants, on processors
  other_device,  // of a GPU, and the ranks run on processors
  all,
};

/// What a run of the plan is held to: the plan's promises, without the predictions and bounds that
/// depend on times which are rough.
struct RunExpectation {
  Expectation expectation;
  RoughTimes rough = RoughTimes::none;
};
/// `on_processors`: the run's ranks are, whatever the plan is for.
RunExpectation expectation_of_run(const Plan& plan, const Calibration& calibration,
                                  bool on_processors);

/// Whether a step's numbers are of the executor's ranks on processors: on GPUs these say what they
/// allocate. False of other software's numbers, and where there are none.
bool ranks_on_processors(const MetricValues& step);

/// Whether no prediction of the metric is left.
bool leaves_out(RoughTimes rough, std::string_view metric);
/// Why rules do not judge by predicted times; empty where they do.
std::string why_times_are_not_judged(RoughTimes rough, const Plan& plan);

}  // namespace tessera
