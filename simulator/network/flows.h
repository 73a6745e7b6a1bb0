// Flows over shared links with max-min fair rates, and when each of them ends.
//
// Bytes, seconds and bytes per second as raw doubles. A flow crosses its links at one rate, of
// which each link carries the flow's weight there: a collective that is pipelined over many links
// is one flow. No flow's rate can grow without another's, which is no larger, falling (Bertsekas
// and Gallager, Data Networks, 6.5.2). Rates change where a flow begins or ends, and there only as
// far as bottlenecks are touched. Equal inputs give equal bits.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "simulator/network/end_times.h"

namespace tessera {

struct Flow {
  std::vector<int> links;  // that it crosses, each once; none: it takes no time
  double bytes = 0;
  double start_s = 0;
  std::vector<double> weights = {};  // bytes on each link for a byte of the flow; empty: 1 on each
};

/// Rate of every flow where all run at once. `capacity` by link, above 0. A flow without links has
/// an infinite one.
std::vector<double> fair_rates(std::span<const double> capacity, std::span<const Flow> flows);

/// When each flow ends. `changes`, where asked for: beginnings and ends that were worked off.
std::vector<double> finish_times(std::span<const double> capacity, std::span<const Flow> flows,
                                 std::int64_t* changes = nullptr);

/// A flow's rate over a time in which it does not change.
struct FlowSegment {
  int flow = 0;
  double start_s = 0, end_s = 0;
  double rate = 0;
};

class FairShares;  // of the links: flows.cc

/// Flows that begin one after another, as what they wait for comes about. Of one thread. Times do
/// not fall from call to call.
class FlowRun {
 public:
  explicit FlowRun(std::span<const double> capacity);
  ~FlowRun();
  FlowRun(const FlowRun&) = delete;
  FlowRun& operator=(const FlowRun&) = delete;

  /// Begins a flow (its start_s is not read), and returns its number; numbers count up from 0. It
  /// has a rate once `settle` was called. Preconditions: it crosses a link and has bytes.
  int begin(double now, Flow flow);
  /// The rates that follow from what began and ended since the last call.
  void settle(double now);
  /// When the next flow ends; infinite where none runs.
  double next_end() const { return ends_.earliest(); }
  /// The flows that have ended by `until`, at `now`.
  std::vector<int> take_ended(double now, double until);
  /// Rates over time of all flows that have ended.
  const std::vector<FlowSegment>& segments() const { return segments_; }
  void keep_segments() { keeps_segments_ = true; }  // else there are none

 private:
  struct Progress {
    double left = 0, since = 0;
    int place = 0;  // in ends_, while it runs
    bool running = false;
  };
  void note(int flow, double until, double rate);

  std::unique_ptr<FairShares> links_;
  std::vector<Progress> progress_;
  std::vector<int> changed_;
  EndTimes ends_;
  std::vector<int> flow_at_, free_places_;     // of ends_
  std::vector<std::pair<int, double>> moved_;  // ends that follow from new rates
  std::vector<FlowSegment> segments_;
  bool keeps_segments_ = false;
};

}  // namespace tessera
