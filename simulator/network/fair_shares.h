// Max-min fair rates of flows over links, kept as flows come and go.
//
// Bytes per second as raw doubles. Flows that one link limits, their bottleneck, have the same
// rate, the link's level, and no other link of theirs that limits flows has a lower one. Links in
// the order of their levels therefore give the levels in one go: each is what the flows of links
// before it leave, over the weight of its own. Where flows come or go, levels are worked out anew
// in that order, those alone which something before them has changed; a link whose level falls
// below that of links before it goes there and takes their flows. The links before a place fix its
// level, and it only ever falls while what is before stays, so that this ends. Where much has
// changed, all links are filled from the lowest. Equal calls give equal bits. Of one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tessera {

struct Flow;  // flows.h

class FairShares {
 public:
  explicit FairShares(std::span<const double> capacity);

  /// Returns the flow's slot; a slot is given again once its flow was removed. Precondition: the
  /// flow crosses a link, its weights are above 0.
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
  /// Links that limit flows at another level than before settle().
  const std::vector<int>& other_levels() const { return other_levels_; }

 private:
  struct Edge {
    int link = 0, place = 0;  // where the link's crossing flows have it
    int effect = -1;          // among those of the flow's bottleneck; -1: this is it
    double weight = 1;
    double until = 0;  // the flow's rate up to which the link, outside of the order, has room
  };
  /// What a flow that a link limits adds to another link.
  struct Effect {
    int link = 0, slot = 0, edge = 0;
    double weight = 1, until = 0;
  };
  struct Crossing {
    int slot = 0, edge = 0;
    double weight = 1;
  };
  struct alignas(64) Link {
    double capacity = 0, level = 0;
    double others = 0;   // in the order: bytes a second of the flows that other links limit
    double weight = 0;   // of the flows that it limits
    int own = 0;         // flows that it limits
    int place = -1;      // in order_; -1: limits none
    int changes = 0;     // of `others` since it was summed up
    bool dirty = false;  // its level, or whether it is full, has to be worked out
    bool noted = false;  // `before` is its level before settle()
    double before = 0;
    int busy = -1;      // its place among those that something crosses
    int unsettled = 0;  // while all are filled: flows without a rate
  };

  static constexpr double kSameRate = 1e-14;  // the part by which rounding makes rates differ

  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  void mark(int index);
  void touch(int index);
  void put(int link, std::size_t from, std::size_t to);
  void swap(int link, std::size_t one, std::size_t other);
  const Edge& edge_over(int slot, int link) const;
  void add_effects(int slot);
  void own(int slot, int link);
  void disown(int slot);
  void note_level(int index);
  void note_move(int slot);
  void report();

  // One after another, in order (level_order.cc). False: too much changes.
  bool sweep();
  bool sweep_from(std::size_t place);
  void assign(int slot);
  void sum_up(int index);
  void set_level(int index, double level);
  void change_load(int index, double change);
  void watch(int index);
  void shift(std::size_t place);
  std::size_t visit(std::size_t place);
  std::size_t insert(int index, double share);
  void take(int slot, int index);

  // All at once.
  void fill();
  void limit(int index, double level);
  void sink();
  void keep();

  std::vector<Link> links_;
  std::vector<std::vector<Crossing>> crossing_;  // by link; those that it limits come first
  std::vector<std::vector<Effect>> effects_;     // by link: of the flows that it limits
  std::vector<int> busy_;                        // links that something crosses
  std::vector<int> order_;                       // links that limit flows, by level
  std::vector<std::vector<Edge>> edges_;         // by slot, and so on
  std::vector<int> bottleneck_, next_, before_;  // links; -1: none
  std::vector<char> moved_;                      // before_ is the bottleneck before settle()
  std::vector<int> free_slots_, running_;
  std::vector<std::size_t> place_;        // in running_
  std::vector<int> added_, touched_;      // slots, links since settle()
  std::size_t changed_ = 0;               // flows since settle()
  std::vector<int> checks_;               // links outside of the order that may be full
  std::size_t dirty_ = 0, inserted_ = 0;  // links of the order
  struct Taken {
    int place = 0, slot = 0;
    double weight = 1;
  };
  std::vector<Taken> takeable_;
  std::vector<std::pair<double, int>> narrowest_;  // heap of shares that were right once
  std::vector<int> moved_slots_, noted_links_;
  std::vector<Move> moves_;
  std::vector<int> other_levels_;
};

}  // namespace tessera
