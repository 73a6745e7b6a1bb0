// Flows over shared links with max-min fair rates, and when each of them ends.
//
// Bytes, seconds and bytes per second as raw doubles. A flow crosses its links at one rate, of
// which each link carries the flow's weight there: a collective that is pipelined over many links
// is one flow. No flow's rate can grow without another's, which is no larger, falling (Bertsekas
// and Gallager, Data Networks, 6.5.2). Rates change where a flow begins or ends, and there only as
// far as bottlenecks are touched. Equal inputs give equal bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "simulator/network/end_times.h"
#include "simulator/network/fair_shares.h"

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

/// Flows that begin one after another, as what they wait for comes about. Of one thread. Times do
/// not fall from call to call.
class FlowRun {
 public:
  explicit FlowRun(std::span<const double> capacity);

  /// Begins a flow (its start_s is not read), and returns its number; numbers count up from 0. It
  /// has a rate once `settle` was called. Preconditions: it crosses a link and has bytes.
  int begin(double now, const Flow& flow);
  /// The rates that follow from what began and ended since the last call.
  void settle(double now);
  /// When the next flow ends; infinite where none runs.
  double next_end() const { return ends_.earliest(); }
  /// The flows that have ended by `until`, at `now`.
  std::vector<int> take_ended(double now, double until);
  /// Rates over time of all flows that have ended, flow by flow.
  const std::vector<FlowSegment>& segments() const { return segments_; }
  void keep_segments() { keeps_segments_ = true; }  // else there are none

 private:
  /// A flow as its bottleneck sees it: it ends once so many bytes have gone through each of the
  /// flows that the bottleneck limits.
  struct End {
    double through = 0;
    int flow = 0;
    bool operator>(const End& other) const;
  };
  struct Progress {
    double end_through = 0;
    int slot = 0;            // of shares_
    int bottleneck = -1;     // -1: has none yet, or has ended
    std::size_t joined = 0;  // of the bottleneck's levels
  };
  struct Level {
    double start_s = 0, end_s = 0, rate = 0;
  };
  /// A link that limits flows: what has gone through each of them, so that another level costs one
  /// change and not one for each flow.
  struct Bottleneck {
    double through = 0, since = 0, level = 0;
    int flows = 0;
    int place = -1;             // in ends_, while there are flows
    std::vector<End> ends;      // a heap; those of flows that have left for another stay in it
    std::vector<Level> levels;  // where segments are kept: since there were none of its flows
  };
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  void advance(Bottleneck& bottleneck, double now);
  void join(int flow, int link, double bytes, double now);
  void leave(int flow, double now);
  bool has_left(const End& end, int link) const;
  double end_of(int link);

  FairShares shares_;
  std::vector<Progress> progress_;       // by flow
  std::vector<int> flow_in_;             // by slot
  std::vector<Bottleneck> bottlenecks_;  // by link
  bool changed_ = false;
  EndTimes ends_;
  std::vector<int> link_at_, free_places_;  // of ends_
  std::vector<int> touched_;                // links whose next end follows from new rates
  std::vector<std::pair<int, double>> moved_;
  std::vector<FlowSegment> segments_;
  bool keeps_segments_ = false;
};

}  // namespace tessera
