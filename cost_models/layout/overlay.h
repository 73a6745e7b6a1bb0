// Where the parts of one tensor before and after a reshard overlap.
//
// The distinct destination boxes are cut into cells that each source part holds entirely or not at
// all, so a cell has one set of holders. A plain value; ranks are global.
#pragma once

#include <cstdint>
#include <vector>

#include "cost_models/layout/reshard_plan.h"

namespace tessera {

struct Overlay {
  struct Cell {
    Box box;
    int holders = 0;  // index into Overlay::holders
  };
  /// A rank that needs the region; ascending by rank. Regions of one rank are disjoint.
  struct Entry {
    int rank = 0;
    int region = 0;
  };

  std::vector<std::vector<int>> holders;   // distinct sets of ranks, each ascending
  std::vector<std::vector<Cell>> regions;  // cells in ascending order, without empty ones
  std::vector<Entry> entries;
};

/// Error (internal) where the sources do not cover a destination.
Overlay overlay_of(const ShardedTensor& tensor);

/// True when two tensors have equal overlays and differ at most in their names.
bool lies_alike(const ShardedTensor& a, const ShardedTensor& b);
std::uint64_t overlay_hash(const ShardedTensor& tensor);

}  // namespace tessera
