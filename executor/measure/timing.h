// Timing on all ranks together. Collective; every rank gets equal results.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "executor/comm/communicator.h"

namespace tessera {

/// Median, least and most seconds.
struct Timing {
  double median = 0, least = 0, most = 0;
};

/// The largest of all ranks' seconds.
double slowest(Communicator& host, double mine);

/// Precondition: not empty.
Timing summary(std::vector<double> seconds);

/// `once` returns its seconds on this rank; the slowest rank counts. Two warm-ups.
Timing timed_on_all(Communicator& host, int repetitions, const std::function<double()>& once);

/// As keys seconds, seconds_least, seconds_most, and gb_per_s of so many bytes in the median.
nlohmann::json timing_json(const Timing& timing, double bytes);

}  // namespace tessera
