// Pareto fronts of role and block options: points of which no other is better in every coordinate.
//
// Plain values; a coordinate is seconds of a phase or chunk, resident bytes, or the bytes that the
// worst phase needs on top. Smaller is better everywhere.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "cost_models/spec/workload.h"

namespace tessera {

struct FrontPoint {
  std::array<double, kPhaseCount> seconds{};  // by phase, or by chunk of a block
  std::int64_t resident = 0, transient = 0;
  std::int64_t switching = 0;   // on top of resident while weights move; 0 once that is settled
  double total = 0;             // sum of seconds: the order of the front
  std::array<int, 4> option{};  // what the point stands for

  bool fits(std::int64_t limit) const { return resident + transient <= limit; }
};

/// True when `a` is no worse than `b` in any of the first `used` seconds and in memory.
inline bool dominates(const FrontPoint& a, const FrontPoint& b, int used) {
  if (a.resident > b.resident || a.transient > b.transient || a.switching > b.switching) {
    return false;
  }
  for (int i = 0; i < used; ++i) {
    if (a.seconds[static_cast<std::size_t>(i)] > b.seconds[static_cast<std::size_t>(i)]) {
      return false;
    }
  }
  return true;
}

/// Leaves the front, ascending by total seconds; of equal points the first stays. A point can only
/// be dominated by one with no larger total, so one sweep over the sorted points is enough (Kung et
/// al. 1975).
inline void keep_front(std::vector<FrontPoint>& points, int used) {
  for (FrontPoint& point : points) {
    point.total = 0;
    for (int i = 0; i < used; ++i) point.total += point.seconds[static_cast<std::size_t>(i)];
  }
  std::stable_sort(points.begin(), points.end(), [](const FrontPoint& a, const FrontPoint& b) {
    if (a.total != b.total) return a.total < b.total;
    if (a.resident != b.resident) return a.resident < b.resident;
    return a.transient < b.transient;
  });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool beaten =
        std::any_of(points.begin(), points.begin() + static_cast<std::ptrdiff_t>(kept),
                    [&](const FrontPoint& better) { return dominates(better, points[i], used); });
    if (!beaten) points[kept++] = points[i];
  }
  points.resize(kept);
}

}  // namespace tessera
