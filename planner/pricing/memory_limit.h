// How many bytes a plan may count on for a rank, and how surely it fits.
//
// What a device holds at the peak of a plan is the bytes that the planner counts for the roles on a
// rank, times (1 + bias) of the engine's account, and beside them the calibration's reserve, what
// the engine has outside its allocator, and what fragmentation makes unusable. Each has a mean and
// a standard deviation, and the sum is taken as normal:
//
//   mean(u)      = (1 + bias) u + reserve + outside + fragmentation x device
//   variance(u)  = (deviation u)^2 + (error x reserve)^2 + outside_deviation^2
//                  + (error x fragmentation x device)^2
//
// A rank fits with the probability that this is at most the device's memory. mean + z deviation
// grows with u, so "fits with a probability of at least 1 - risk" is a limit on u, which is worked
// out once for each kind of device: the search and its proof compare bytes with it and know of no
// probability. Ranks of one plan err together (one account, one software), so a plan fits with the
// probability of its fullest rank. Figures of engines: MemoryAccuracy (planner/engines).
//
// Pure functions. Bytes of one rank; probabilities from 0 to 1.
#pragma once

#include <string>

#include "cost_models/calibration.h"
#include "cost_models/spec/cluster_spec.h"
#include "cost_models/spec/units.h"
#include "planner/engines/memory_accuracy.h"

namespace tessera {

struct Plan;
struct PlanRequest;

/// The figures above, of one kind of device under one engine.
struct MemoryError {
  double device = 0;            // bytes
  double growth = 1;            // 1 + bias
  double deviation = 0;         // part of the counted bytes
  double beside = 0;            // mean of what does not depend on them: reserve, outside, fragments
  double beside_deviation = 0;  // of it
  double fragments = 0;         // of `beside`: what the allocator cannot use
  double reserve = 0;           // of `beside`: what peaks count
};

MemoryError memory_error(const ClusterSpec& cluster, const Calibration& calibration,
                         const MemoryAccuracy& accuracy);

/// The most bytes of roles that fit with a probability of at least 1 - risk, rounded down; 0 where
/// none do. Precondition: risk from kLeastRisk to kMostRisk (planner/request/risk.h).
Bytes most_bytes(const MemoryError& error, double risk);
/// The probability that so many bytes of roles fit.
double fit_probability(const MemoryError& error, Bytes roles);
/// One standard deviation of what a device holds then.
Bytes deviation_of(const MemoryError& error, Bytes roles);

/// Of a rank, what the calibration keeps back: peaks count it beside the roles.
Bytes reserve_of(const PlanRequest& request);

/// Bytes of a rank that the roles on it may use under the request's risk, and under another.
Bytes memory_limit(const PlanRequest& request);
Bytes memory_limit(const PlanRequest& request, double risk);
/// That with the calibration's reserve, which peaks count: what a plan's peak may reach. At most
/// the device's memory, which a reserve alone may exceed.
Bytes usable_memory(const PlanRequest& request);

/// usable_memory under the risk that a plan was made with, in a pool of that view
/// (spec/node_groups.h). `calibration`: of the whole cluster.
Bytes usable_memory(const Plan& plan, const Calibration& calibration, int view = 0);
/// The same of a rank's own GPU type.
Bytes usable_memory_of_rank(const Plan& plan, const Calibration& calibration, int rank);

/// The probability that so many bytes of the roles on a rank fit.
double fit_probability(const PlanRequest& request, Bytes roles);

/// What of a device is no part of usable_memory, at that limit.
struct MemoryMargin {
  Bytes fragments;  // mean of what the allocator cannot use
  Bytes outside;    // mean of what lies outside the allocator beyond the reserve
  Bytes account;    // mean of what the engine's account leaves out; negative: counts too much
  Bytes safety;     // the error bar, as often as the risk asks for: what is left over
};
MemoryMargin margin_of(const PlanRequest& request);

/// "91.20 GiB of 76.00 GiB": the roles' bytes with the reserve, as peaks are shown, of
/// usable_memory.
std::string of_usable(const PlanRequest& request, Bytes bytes);

/// How surely a plan fits.
struct PlanFit {
  double probability = 1;
  Bytes peak;       // predicted of the rank that decides, the reserve counted
  Bytes held;       // mean of what its device holds then, fragments too
  Bytes deviation;  // one standard deviation of that
  Bytes device;     // its memory
  Bytes usable;     // what of it plans may fill (usable_memory)
};

/// Of the plan's fullest rank, whatever risk it was made with; with several GPU types of the pool
/// that is likeliest to run out, whose roles' fullest ranks count together. Precondition: roles and
/// prediction state their bytes.
PlanFit fit_of(const Plan& plan, const Calibration& calibration);

}  // namespace tessera
