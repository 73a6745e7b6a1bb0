// Flows over shared links with max-min fair rates, and when each of them ends.
//
// Bytes, seconds and bytes per second as raw doubles. A flow crosses its links at one rate; no
// flow's rate can grow without another's, which is no larger, falling (Bertsekas and Gallager, Data
// Networks, 6.5.2). Rates change where a flow begins or ends, and there only as far as
// bottlenecks are touched. Pure functions; equal inputs give equal bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera {

struct Flow {
  std::vector<int> links;  // that it crosses, each once; none: it takes no time
  double bytes = 0;
  double start_s = 0;
};

/// Rate of every flow where all run at once. `capacity` by link, above 0. A flow without links has
/// an infinite one.
std::vector<double> fair_rates(std::span<const double> capacity, std::span<const Flow> flows);

/// When each flow ends. `changes`, where asked for: beginnings and ends that were worked off.
std::vector<double> finish_times(std::span<const double> capacity, std::span<const Flow> flows,
                                 std::int64_t* changes = nullptr);

}  // namespace tessera
