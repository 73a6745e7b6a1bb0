// Elements that places of a new layout have in common with the parts that ranks hold.
//
// For rank_assignment.cc alone. Places that hold the same, and ranks that do, are one class each,
// so that the size does not grow with the cluster. An object of one thread; counts are elements.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cost_models/layout/box.h"
#include "cost_models/layout/parameter_table.h"
#include "cost_models/layout/rank_map.h"
#include "cost_models/layout/reshard_plan.h"

namespace tessera {

class PlaceOverlaps {
 public:
  /// `options` is kept by reference.
  PlaceOverlaps(const ParameterTable& table, const RankMap& from, const RankMap& to,
                const ReshardOptions& options);

  /// True: more than ten million pairs of places; nothing but classes can be asked for then.
  bool too_many() const { return too_many_; }
  int node(int rank) const { return options_.node_of ? options_.node_of(rank) : 0; }
  /// Class of a place, by its index in the new layout.
  int place(std::size_t index) const { return place_of_index_[index]; }
  /// Class of what the rank holds, -1 = nothing.
  int source(int rank) const;
  /// Classes of what the node's ranks hold, ascending.
  const std::vector<int>& sources_on(int node) const;

  /// Elements that a rank with `source` lacks of `place`.
  std::int64_t received(int place, int source) const {
    const auto p = static_cast<std::size_t>(place);
    return wanted_[p] - (source < 0 ? 0 : kept_[p][static_cast<std::size_t>(source)]);
  }
  /// Elements of a place that none of the sources holds. Remembered by (place, sources).
  std::int64_t absent(int place, const std::vector<int>& sources);

 private:
  using CoordKey = std::array<int, 6>;  // coordinates with equal keys hold the same of every tensor

  struct CoordClasses {
    std::map<CoordKey, int> ids;
    std::vector<RankCoord> coords;  // one of each class

    int add(const ParallelLayout& layout, const RankCoord& coord, bool stored);
  };

  struct Kind {
    std::int64_t count = 0;
    std::vector<std::optional<Box>> places, sources;
  };

  void add_kind(const Parameter& parameter, int count, const RankMap& from, const RankMap& to);

  const ReshardOptions& options_;
  CoordClasses sources_, places_;
  std::unordered_map<int, int> source_of_rank_;
  std::map<int, std::vector<int>> sources_of_node_;  // ascending
  std::vector<int> place_of_index_;
  bool too_many_ = false;
  std::vector<Kind> kinds_;
  std::vector<std::int64_t> wanted_;
  std::vector<std::vector<std::int64_t>> kept_;
  std::map<std::pair<int, std::vector<int>>, std::int64_t> absent_;
};

}  // namespace tessera
