#include "simulator/network/end_times.h"

#include <algorithm>
#include <bit>

namespace tessera {

int EndTimes::first() const {
  std::size_t node = 1;
  while (node < places_) node = 2 * node + (tree_[2 * node] == tree_[1] ? 0 : 1);
  return static_cast<int>(node - places_);
}

void EndTimes::set(int place, double time) {
  reserve(place);
  const std::size_t leaf = places_ + static_cast<std::size_t>(place);
  tree_[leaf] = time;
  lift(leaf);
}

void EndTimes::set(std::span<const std::pair<int, double>> times) {
  for (const auto& [place, time] : times) {
    reserve(place);
    tree_[places_ + static_cast<std::size_t>(place)] = time;
  }
  const auto height = static_cast<std::size_t>(std::bit_width(places_));
  if (times.size() * height > places_) return make();
  for (const auto& [place, time] : times) lift(places_ + static_cast<std::size_t>(place));
}

void EndTimes::reserve(int place) {
  const auto wanted = static_cast<std::size_t>(place) + 1;
  if (wanted <= places_) return;
  const std::size_t places = std::bit_ceil(wanted);
  std::vector<double> tree(2 * places, std::numeric_limits<double>::infinity());
  std::copy(tree_.begin() + static_cast<std::ptrdiff_t>(places_), tree_.end(),
            tree.begin() + static_cast<std::ptrdiff_t>(places));
  places_ = places;
  tree_ = std::move(tree);
  make();
}

void EndTimes::lift(std::size_t leaf) {
  for (std::size_t node = leaf / 2; node > 0; node /= 2) {
    tree_[node] = std::min(tree_[2 * node], tree_[2 * node + 1]);
  }
}

void EndTimes::make() {
  for (std::size_t node = places_; node-- > 1;) {
    tree_[node] = std::min(tree_[2 * node], tree_[2 * node + 1]);
  }
}

}  // namespace tessera
