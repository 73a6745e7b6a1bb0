// The places of a placement's pools in the cluster, and the weights of their GPUs by price.
//
// Pools are contiguous ranges of ranks. With several GPU types a pool lies in the groups of its
// view and touches each of them. Pure functions; ranks are global.
#pragma once

#include <vector>

#include "cost_models/spec/cluster_spec.h"

namespace tessera {

/// Sizes that a block of GPUs may have: divisors of a node, and whole nodes; ascending.
std::vector<int> block_sizes(const ClusterSpec& cluster);

/// First rank of each block (sizes as given): blocks of whole nodes first, then smaller ones by
/// first fit in descending size, none across a node's border. Empty when they do not fit.
std::vector<int> place_blocks(const std::vector<int>& sizes, const ClusterSpec& cluster);

struct PlacedPools {
  std::vector<int> first_rank;  // by pool; empty: they have no room
  double billed_gpus = 0;       // in units of the cluster's mean price
  bool found() const { return !first_rank.empty(); }
};

/// Pools of these sizes and views (spec/node_groups.h) in the ranges that cost least. Whole nodes
/// first, then smaller pools by first fit (place_blocks), in each group of nodes.
PlacedPools place_pools(const std::vector<int>& sizes, const std::vector<int>& views,
                        const ClusterSpec& cluster);

/// True where a pool of that size can touch all groups of the view, and no other.
bool fits_view(const ClusterSpec& cluster, int size, int view);

/// The least that a GPU of each view counts.
std::vector<double> least_weights(const ClusterSpec& cluster);

}  // namespace tessera
