// The earliest of many times that change: a tree of minima over numbered places.
//
// A change costs the logarithm of the number of places; where many change at once the tree is made
// anew. Seconds; a place without a time has an infinite one. A value of one owner.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace tessera {

class EndTimes {
 public:
  double earliest() const { return tree_[1]; }
  /// The first place that has the earliest time. Precondition: one has a time.
  int first() const;
  void set(int place, double time);
  /// Each place once.
  void set(std::span<const std::pair<int, double>> times);

 private:
  void reserve(int place);
  void lift(std::size_t leaf);  // what follows from it, up to the root
  void make();                  // all inner nodes

  std::size_t places_ = 1;  // a power of two; leaf of place p is tree_[places_ + p]
  std::vector<double> tree_ = std::vector<double>(2, std::numeric_limits<double>::infinity());
};

}  // namespace tessera
