// Timing on all ranks together.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "executor/comm/communicator.h"

namespace tessera {

/// Median, least and most seconds.
struct Timing {
  double median = 0, least = 0, most = 0;
};

inline double slowest(Communicator& host, double mine) {
  auto value = static_cast<float>(mine);
  host.all_reduce(&value, 1, DType::fp32, ReduceOp::max);
  return value;
}

inline Timing summary(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return {seconds[seconds.size() / 2], seconds.front(), seconds.back()};
}

/// `once` returns its seconds on this rank; the slowest rank counts. Two warm-ups.
inline Timing timed_on_all(Communicator& host, int repetitions,
                           const std::function<double()>& once) {
  std::vector<double> seconds;
  for (int i = -2; i < repetitions; ++i) {
    const double each = slowest(host, once());
    if (i >= 0) seconds.push_back(each);
  }
  return summary(std::move(seconds));
}

}  // namespace tessera
