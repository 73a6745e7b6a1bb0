// How long communication takes, per group and operation, on one rank.
//
// Owned by the rank's run loop; must outlive the communicators that time into it. One thread. Host
// operations are timed around the call; on a GPU events are put on the stream and read at the end
// of the step, so that nothing is synchronised in between.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/comm/groups.h"
#include "simulator/timeline/timeline.h"

namespace tessera {

/// Marks points of a device stream and tells their times later.
class DeviceClock {
 public:
  virtual ~DeviceClock() = default;
  /// Index of the mark among those since the last resolve, or -1 while the stream is captured.
  virtual int mark() = 0;
  /// Waits for every mark and returns when each was passed, on steady_clock's scale.
  virtual std::vector<std::chrono::steady_clock::time_point> resolve() = 0;
};

/// `bytes` is the larger of the send and the receive buffer, summed over calls.
struct CommTime {
  std::int64_t calls = 0, bytes = 0;
  double seconds = 0;
};

class CommTimes {
 public:
  using Clock = std::chrono::steady_clock;

  /// `clock` for device communicators (nullptr: host). Spans go to `timeline` when given, counted
  /// from `origin`.
  explicit CommTimes(int rank, std::unique_ptr<DeviceClock> clock = nullptr,
                     Timeline* timeline = nullptr, Clock::time_point origin = Clock::now());

  /// Phase and step of the spans that follow.
  void enter(Phase phase, int step);

  /// Adds what the device clock holds. Called at the end of a step, and by metrics().
  void resolve();

  /// `comm/<group>/<op>_s` and `comm/<group>/<op>_bytes` since the last call.
  std::map<std::string, double> metrics();

  /// Wraps a group so that its operations are timed here. The name "tp" gives `comm/tp/...`.
  std::unique_ptr<Communicator> timed(std::unique_ptr<Communicator> group, const std::string& name);

  /// For make_groups: times every group under prefix + its name.
  GroupDecorator decorator(const std::string& prefix = "");

 private:
  friend class TimedCommunicator;
  struct Pending {
    CommTime* into;
    Span span;
    int begin, end;
  };
  void add(CommTime& into, Span span, Clock::time_point begin, Clock::time_point end);

  int rank_;
  std::unique_ptr<DeviceClock> clock_;
  Timeline* timeline_;
  Clock::time_point origin_;
  Phase phase_ = Phase::load;
  int step_ = 0;
  std::map<std::string, CommTime> times_;  // "comm/<group>/<op>"; addresses stay valid
  std::vector<Pending> pending_;
};

}  // namespace tessera
