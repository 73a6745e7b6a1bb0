// Max-min fair rates of flows over links, kept as flows come and go.
//
// Bytes per second as raw doubles. Flows that one link limits, their bottleneck, have the same
// rate, the link's level: so many levels as there are bottlenecks say the rates of all flows. What
// comes or goes opens its links: the flows on them are worked out anew, those of all others kept;
// links that are no bottleneck any more are opened, too, until every flow has one, and all of them
// once they are a good part of what runs. Equal calls give equal bits. Of one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace tessera {

struct Flow;  // flows.h

class FairShares {
 public:
  explicit FairShares(std::span<const double> capacity);

  /// Returns the flow's slot; a slot is given again once its flow was removed. Precondition: the
  /// flow crosses a link.
  int add(const Flow& flow);
  void remove(int slot);
  /// Works out the rates that follow from what was added and removed since the last call.
  void settle();

  /// Of a flow that was settled: the link that limits it, and its rate.
  int bottleneck(int slot) const { return bottleneck_[at(slot)]; }
  double rate(int slot) const { return links_[at(bottleneck_[at(slot)])].level; }
  /// Rate of the flows that a link limits.
  double level(int link) const { return links_[at(link)].level; }

  /// A flow whose bottleneck is another one since settle(); `before` -1: it was just added.
  struct Move {
    int slot = 0, before = -1;
  };
  const std::vector<Move>& moves() const { return moves_; }
  /// Links that have limited flows before and after settle(), at another level.
  const std::vector<int>& other_levels() const { return other_levels_; }

 private:
  struct Edge {
    int link = 0, place = 0;  // where the link's crossing flows have it
    double weight = 1;
  };
  struct Crossing {
    int slot = 0, edge = 0;
    double weight = 1;
  };
  struct Link {
    double capacity = 0, level = 0;
    double weight = 0;  // of all that cross it
    int busy = -1;      // its place among those that something crosses
    // While rates are worked out, of the flows that are:
    double left = 0, unsettled_weight = 0, next_level = 0;
    std::int64_t unsettled = 0, limited = 0;
    std::int64_t kept = 0;  // flows that it limits and that are not worked out
    bool counted = false, opened = false;
  };

  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  static double share(const Link& link) {
    return (link.left > 0 ? link.left : 0) / link.unsettled_weight;
  }
  void open(int link);
  void collect(int link);
  void count_part();
  void count_all();
  void count_wider();
  void count(int link);
  void fill();
  void sink();
  void limit(int full, double rate);
  void open_broken();
  bool broken(int link) const;
  void keep();

  std::vector<Link> links_;
  std::vector<std::vector<Crossing>> crossing_;  // by link
  std::vector<int> busy_;                        // links that something crosses
  std::vector<std::vector<Edge>> edges_;         // by slot, and so on
  std::vector<int> bottleneck_, next_;           // links; -1: none
  std::vector<char> unsettled_, worked_out_;
  std::vector<int> free_slots_;
  std::vector<int> running_;        // slots
  std::vector<std::size_t> place_;  // in running_
  int whole_calls_ = 0;             // of settle() that work all flows out at once

  std::vector<int> open_, solved_, counted_;       // links, slots, links
  std::vector<std::pair<double, int>> narrowest_;  // heap of shares that were right once
  std::size_t settled_ = 0;                        // of the solved flows
  double widest_ = 0;                              // no link is narrower that has not been counted
  /// The lowest when all were last worked out.
  double bottom_level_ = std::numeric_limits<double>::infinity();
  std::vector<Move> moves_;
  std::vector<int> other_levels_;
};

}  // namespace tessera
