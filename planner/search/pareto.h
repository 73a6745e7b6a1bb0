// Pareto fronts of role and block options: points of which no other is better in every coordinate.
//
// Plain values; a coordinate is seconds of a phase or chunk, resident bytes, or the bytes that the
// worst phase needs on top. Smaller is better everywhere.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "cost_models/spec/units.h"
#include "planner/pricing/chunk_seconds.h"

namespace tessera {

struct FrontPoint {
  /// By chunk of a block. Between the options of one role each phase is a chunk of its own.
  ChunkSeconds seconds;
  Bytes resident, transient;
  Bytes in_reshard;             // on top of resident while weights move; 0 once that is settled
  double share = 0;             // of an actor whose rollout is elsewhere (Evaluator::Senders)
  Seconds total;                // sum of seconds: the order of the front
  std::array<int, 4> option{};  // what the point stands for
  int rollout = 0;              // the rollout's option beside the actor's, which is option[0]

  bool fits(Bytes limit) const { return resident + transient <= limit; }
};

/// True when `a` is no worse than `b` in any of the first `used` seconds, in memory and as sender.
inline bool dominates(const FrontPoint& a, const FrontPoint& b, int used) {
  if (a.resident > b.resident || a.transient > b.transient || a.in_reshard > b.in_reshard ||
      a.share > b.share) {
    return false;
  }
  for (int i = 0; i < used; ++i) {
    const auto chunk = ChunkIndex{static_cast<std::size_t>(i)};
    if (a.seconds[chunk] > b.seconds[chunk]) return false;
  }
  return true;
}

/// The coordinates of kept points side by side, so that a scan of them reads little memory.
class FrontKeys {
 public:
  explicit FrontKeys(int used) : width_(static_cast<std::size_t>(used) + 4) {}

  void add(const FrontPoint& point) {
    const std::size_t begin = keys_.size();
    keys_.resize(begin + width_);
    write(point, &keys_[begin]);
  }
  /// True when a kept point is no worse in any coordinate; the one that was last so is asked first.
  bool dominate(const FrontPoint& point) {
    std::array<double, ChunkSeconds::size() + 4> key;
    write(point, key.data());
    if (latest_ < keys_.size() && no_worse(latest_, key.data())) return true;
    for (std::size_t begin = 0; begin < keys_.size(); begin += width_) {
      if (!no_worse(begin, key.data())) continue;
      latest_ = begin;
      return true;
    }
    return false;
  }

 private:
  // Bytes are exact in a double.
  void write(const FrontPoint& point, double* key) const {
    key[0] = Traffic(point.resident);
    key[1] = Traffic(point.transient);
    key[2] = Traffic(point.in_reshard);
    key[3] = point.share;
    std::copy_n(point.seconds.begin(), width_ - 4, key + 4);
  }
  bool no_worse(std::size_t begin, const double* key) const {
    for (std::size_t d = 0; d < width_; ++d) {
      if (keys_[begin + d] > key[d]) return false;
    }
    return true;
  }

  std::size_t width_;
  std::size_t latest_ = 0;  // begin of a key
  std::vector<double> keys_;
};

/// Leaves the front, ascending by total seconds; of equal points the first stays. A point can only
/// be dominated by one with no larger total, so one sweep over the sorted points is enough (Kung et
/// al. 1975).
inline void keep_front(std::vector<FrontPoint>& points, int used) {
  for (FrontPoint& point : points) {
    point.total = {};
    for (int i = 0; i < used; ++i) point.total += point.seconds.values[static_cast<std::size_t>(i)];
  }
  std::stable_sort(points.begin(), points.end(), [](const FrontPoint& a, const FrontPoint& b) {
    if (a.total != b.total) return a.total < b.total;
    if (a.resident != b.resident) return a.resident < b.resident;
    return a.transient < b.transient;
  });
  std::size_t kept = 0;
  FrontKeys keys(used);
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (keys.dominate(points[i])) continue;
    keys.add(points[i]);
    if (kept != i) points[kept] = points[i];
    ++kept;
  }
  points.resize(kept);
}

}  // namespace tessera
