// The split rule: how a count of units is cut into parts.
//
// Part i of t holds units [floor(i u / t), floor((i+1) u / t)). Parts cover every unit once, differ
// by at most one unit and nest whenever t divides t'; nothing is padded.
#pragma once

#include <cstdint>

namespace tessera {

/// A half-open range [lo, hi) of units, rows or elements.
struct Interval {
  std::int64_t lo = 0, hi = 0;

  constexpr std::int64_t size() const { return hi > lo ? hi - lo : 0; }
  constexpr bool empty() const { return hi <= lo; }
  bool operator==(const Interval&) const = default;
};

constexpr Interval intersect(Interval a, Interval b) {
  return {a.lo > b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
}

/// Part `part` of `parts` of `units`. Precondition: 0 <= part < parts, units * parts < 2^63.
constexpr Interval split(std::int64_t units, std::int64_t parts, std::int64_t part) {
  return {part * units / parts, (part + 1) * units / parts};
}

}  // namespace tessera
