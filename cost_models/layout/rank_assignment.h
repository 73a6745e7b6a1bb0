// Which rank takes which place of a layout, so that a reshard into it moves the fewest bytes.
//
// First across nodes: blocks of places that communicate much (a TP or expert group, consecutive
// stages) stay on one node and go where most of their elements are. Then within each node: places
// go to the ranks that hold most of them. Both are minimum-cost flows over classes of alike places,
// nodes and ranks, so their size does not grow with the cluster. Where the layout's groups divide
// the training groups, HybridFlow's strided map (rank_map.h) is such a map in closed form.
// Pure functions; counts are elements.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cost_models/layout/parameter_table.h"
#include "cost_models/layout/rank_map.h"
#include "cost_models/layout/reshard_plan.h"

namespace tessera {

/// Elements that a reshard moves at least: nobody receives what it holds, and nothing that a rank
/// of its node holds comes from another node.
struct MovedElements {
  std::int64_t across_nodes = 0, received = 0;                  // of all ranks
  std::int64_t busiest_across_nodes = 0, busiest_received = 0;  // of one rank
  bool operator==(const MovedElements&) const = default;
};
MovedElements moved_elements(const ParameterTable& table, const RankMap& from, const RankMap& to,
                             const ReshardOptions& options = {});

/// `ranks` in the contiguous order of `to`'s coordinates, as RankOrder::list takes them. No rank
/// receives more than the busiest did in the order given. They stay as they are where no order
/// moves less, where the groups do not fill the nodes evenly, and where the model and the layouts
/// have more than ten million pairs of places (experts over hundreds of ranks).
std::vector<int> assign_ranks(const ParameterTable& table, const RankMap& from,
                              const ParallelLayout& to, std::span<const int> ranks,
                              const ReshardOptions& options = {});

/// How many consecutive places of `layout` stay on one node when nodes hold `slots` ranks of the
/// role each: whole TP (or expert) groups, and as many consecutive stages as fit; of a larger group
/// the part that fills a node. 0 = the groups do not fill the nodes evenly.
int places_together(const ParallelLayout& layout, std::span<const int> slots);

}  // namespace tessera
