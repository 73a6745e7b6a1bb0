#include "cost_models/layout/overlay.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

struct BoxLess {
  bool operator()(const Box& a, const Box& b) const {
    for (int d = 0; d < a.rank; ++d) {
      const Interval& x = a.dims[static_cast<size_t>(d)];
      const Interval& y = b.dims[static_cast<size_t>(d)];
      if (x.lo != y.lo) return x.lo < y.lo;
      if (x.hi != y.hi) return x.hi < y.hi;
    }
    return false;
  }
};

std::string to_text(const Box& box) {
  std::string text;
  for (int d = 0; d < box.rank; ++d) {
    const Interval& side = box.dims[static_cast<size_t>(d)];
    text += (d > 0 ? " x [" : "[") + std::to_string(side.lo) + ", " + std::to_string(side.hi) + ")";
  }
  return text;
}

/// The elements that every rank needs, as boxes that do not overlap within the rank.
std::vector<Holding> disjoint_destinations(std::span<const Holding> wanted) {
  const auto by_rank = [](const Holding& a, const Holding& b) { return a.rank < b.rank; };
  std::vector<Holding> sorted;
  if (!std::is_sorted(wanted.begin(), wanted.end(), by_rank)) {
    sorted.assign(wanted.begin(), wanted.end());
    std::stable_sort(sorted.begin(), sorted.end(), by_rank);
    wanted = sorted;
  }
  std::vector<Holding> out;
  out.reserve(wanted.size());
  size_t first = 0;  // of the rank in hand
  for (const Holding& holding : wanted) {
    if (volume(holding.box) == 0) continue;
    if (out.empty() || out.back().rank != holding.rank) {
      first = out.size();
      out.push_back(holding);
      continue;
    }
    std::vector<Box> fresh{holding.box};
    for (size_t i = first; i < out.size(); ++i) {
      std::vector<Box> rest;
      for (const Box& box : fresh) {
        const std::vector<Box> parts = subtract(box, out[i].box);
        rest.insert(rest.end(), parts.begin(), parts.end());
      }
      fresh = std::move(rest);
    }
    for (const Box& box : fresh) out.push_back({holding.rank, box});
  }
  return out;
}

class Builder {
 public:
  Builder(const std::vector<HeldBox>& held, const std::string& tensor)
      : held_(held), tensor_(tensor) {}

  Overlay build(const Wanted& wanted) {
    for (const Box& region : wanted.regions) overlay_.regions.push_back(cells_of(region));
    return std::move(overlay_);
  }

 private:
  std::vector<Overlay::Cell> cells_of(const Box& region) {
    std::vector<const HeldBox*> touching;
    std::array<std::vector<std::int64_t>, kMaxTensorRank> cuts;
    const auto cut = [&](const Box& box) {
      for (int d = 0; d < box.rank; ++d) {
        const auto dim = static_cast<size_t>(d);
        cuts[dim].insert(cuts[dim].end(), {box.dims[dim].lo, box.dims[dim].hi});
      }
    };
    cut(region);
    for (const HeldBox& source : held_) {
      const Box common = intersect(source.box, region);
      if (volume(common) == 0) continue;
      touching.push_back(&source);
      cut(common);
    }
    for (auto& list : cuts) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
    std::vector<Overlay::Cell> cells;
    grid(region, 0, cuts, touching, cells);
    for (int d = region.rank - 1; d >= 0; --d) merge_along(d, cells);
    std::sort(cells.begin(), cells.end(), [](const Overlay::Cell& a, const Overlay::Cell& b) {
      return BoxLess{}(a.box, b.box);
    });
    return cells;
  }

  /// Cells of the grid of cuts from dim `d` on; sources that do not touch are dropped on the way.
  void grid(const Box& box, int d,
            const std::array<std::vector<std::int64_t>, kMaxTensorRank>& cuts,
            const std::vector<const HeldBox*>& touching, std::vector<Overlay::Cell>& cells) {
    if (d >= std::min(box.rank, kMaxTensorRank)) {
      cells.push_back({box, holders_of(box, touching)});
      return;
    }
    const auto dim = static_cast<size_t>(d);
    for (size_t i = 0; i + 1 < cuts[dim].size(); ++i) {
      Box slab = box;
      slab.dims[dim] = {cuts[dim][i], cuts[dim][i + 1]};
      std::vector<const HeldBox*> here;
      for (const HeldBox* source : touching) {
        if (!intersect(source->box.dims[dim], slab.dims[dim]).empty()) here.push_back(source);
      }
      grid(slab, d + 1, cuts, here, cells);
    }
  }

  int holders_of(const Box& cell, const std::vector<const HeldBox*>& covering) {
    if (covering.empty()) {
      throw Error(ExitCode::internal, "no source holds " + to_text(cell) + " of tensor '" +
                                          tensor_ + "', which a destination needs");
    }
    std::vector<int> ranks;
    for (const HeldBox* source : covering) {
      ranks.insert(ranks.end(), source->ranks.begin(), source->ranks.end());
    }
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    const auto [found, fresh] = ids_.try_emplace(ranks, static_cast<int>(ids_.size()));
    if (fresh) overlay_.holders.push_back(std::move(ranks));
    return found->second;
  }

  /// Joins neighbours along dim `d` that have the same holders and agree in every other dim.
  static void merge_along(int d, std::vector<Overlay::Cell>& cells) {
    const auto dim = static_cast<size_t>(d);
    const auto without = [dim](const Box& box) {
      Box rest = box;
      rest.dims[dim] = {};
      return rest;
    };
    std::sort(cells.begin(), cells.end(), [&](const Overlay::Cell& a, const Overlay::Cell& b) {
      const Box x = without(a.box), y = without(b.box);
      if (!(x == y)) return BoxLess{}(x, y);
      return a.box.dims[dim].lo < b.box.dims[dim].lo;
    });
    std::vector<Overlay::Cell> merged;
    for (const Overlay::Cell& cell : cells) {
      if (!merged.empty() && merged.back().holders == cell.holders &&
          merged.back().box.dims[dim].hi == cell.box.dims[dim].lo &&
          without(merged.back().box) == without(cell.box)) {
        merged.back().box.dims[dim].hi = cell.box.dims[dim].hi;
      } else {
        merged.push_back(cell);
      }
    }
    cells = std::move(merged);
  }

  const std::vector<HeldBox>& held_;
  const std::string& tensor_;
  std::map<std::vector<int>, int> ids_;
  Overlay overlay_;
};

}  // namespace

std::vector<HeldBox> held_boxes(std::span<const Holding> source) {
  std::map<Box, std::vector<int>, BoxLess> boxes;
  for (const Holding& holding : source) {
    if (volume(holding.box) > 0) boxes[holding.box].push_back(holding.rank);
  }
  std::vector<HeldBox> held;
  for (auto& [box, ranks] : boxes) {
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    held.push_back({box, std::move(ranks)});
  }
  return held;
}

Wanted wanted_boxes(std::span<const Holding> destination) {
  Wanted wanted;
  std::map<Box, int, BoxLess> regions;
  for (const Holding& holding : disjoint_destinations(destination)) {
    const auto [found, fresh] = regions.try_emplace(holding.box, static_cast<int>(regions.size()));
    if (fresh) wanted.regions.push_back(holding.box);
    wanted.entries.push_back({holding.rank, found->second});
  }
  return wanted;
}

Overlay overlay_of(const std::vector<HeldBox>& held, const Wanted& wanted,
                   const std::string& tensor) {
  return Builder(held, tensor).build(wanted);
}

}  // namespace tessera
