// How many sequences of a rollout are active at a time, and its tail: the time in which the last
// few responses keep their replicas while most slots are empty.
//
// Integer nanoseconds from the start of the timeline. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera {

struct RolloutSegment;

/// From `time_ns` on so many sequences have a slot, and so many have ended.
struct ActiveSample {
  std::int64_t time_ns = 0;
  std::int64_t active = 0, ended = 0;
  bool operator==(const ActiveSample&) const = default;
};

/// A replica's part of a step's generation.
struct ReplicaRollout {
  int step = 0, replica = 0;
  std::vector<int> ranks;  // ascending
  std::vector<ActiveSample>
      samples;  // the first where the call starts, the last where it ends here
  bool operator==(const ReplicaRollout&) const = default;
};

/// Of segments that follow one another from `first_ns` on, in a call that starts at `call_ns`.
/// Segments in which neither number changes are one.
std::vector<ActiveSample> active_samples(std::span<const RolloutSegment> segments,
                                         std::int64_t call_ns, std::int64_t first_ns);

/// When a step's sequences have ended.
struct RolloutTail {
  int step = 0;
  std::int64_t sequences = 0;
  std::int64_t start_ns = 0, end_ns = 0;  // of the call
  std::int64_t half_ns = 0;               // when half of them have ended
  std::int64_t most_ns = 0;               // when nine tenths have
  /// Of the call's time what is left behind `most_ns`.
  double share() const;
  bool operator==(const RolloutTail&) const = default;
};

/// One of every step, in their order. `rollout`: by step.
std::vector<RolloutTail> rollout_tails(std::span<const ReplicaRollout> rollout);

}  // namespace tessera
