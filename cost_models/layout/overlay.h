// Where the parts of one tensor before and after a reshard overlap.
//
// The distinct destination boxes are cut into cells that each source part holds entirely or not at
// all, so a cell has one set of holders. Tensors of which only one side lies alike share that side.
// Plain values; ranks are global.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cost_models/layout/reshard_plan.h"

namespace tessera {

/// A box that sources hold, and the ranks that do, ascending.
struct HeldBox {
  Box box;
  std::vector<int> ranks;
};
/// The distinct boxes that are not empty, ascending.
std::vector<HeldBox> held_boxes(std::span<const Holding> source);

/// The distinct boxes that ranks need, and who needs which.
struct Wanted {
  /// A rank that needs the region; ascending by rank. Regions of one rank are disjoint.
  struct Entry {
    int rank = 0;
    int region = 0;
  };

  std::vector<Box> regions;
  std::vector<Entry> entries;
};
Wanted wanted_boxes(std::span<const Holding> destination);

struct Overlay {
  struct Cell {
    Box box;
    int holders = 0;  // index into Overlay::holders
  };

  std::vector<std::vector<int>> holders;   // distinct sets of ranks, each ascending
  std::vector<std::vector<Cell>> regions;  // by region of Wanted, in ascending order, none empty
};

/// Error (internal) where the sources do not cover a destination; it names the tensor.
Overlay overlay_of(const std::vector<HeldBox>& held, const Wanted& wanted,
                   const std::string& tensor);

}  // namespace tessera
