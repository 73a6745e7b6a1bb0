// Pools of GPUs in a cluster with several GPU types: which types a range of ranks has, and the
// cluster as a pool on them sees it.
//
// Ranks count the GPUs in node order, so every type has a contiguous range of them. A pool within
// one type has that type's figures; a pool that spans types runs at the weakest of each of theirs:
// its ranks work in step, and all of them must fit. Pure functions; ranks are global.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cost_models/spec/cluster_spec.h"

namespace tessera {

inline constexpr std::size_t kMostGroups = 4;

/// Consecutive groups, both ends included.
struct GroupRange {
  int first = 0, last = 0;
  bool single() const { return first == last; }
  bool operator==(const GroupRange&) const = default;
};

/// The ways in which a pool can lie in the cluster, numbered as Candidate::view: all groups, each
/// group alone, then those that span several but not all. One way where all GPUs are of one type.
std::vector<GroupRange> pool_views(const ClusterSpec& cluster);

/// The view of a pool on these ranks (any order); 0 where all GPUs are of one type.
int view_of(const ClusterSpec& cluster, std::span<const int> ranks);

/// The cluster as a pool of that view sees it: device, links, memory and price of its groups, the
/// weakest of each. `nodes` stays that of the whole cluster; the result has no groups.
ClusterSpec seen_from(const ClusterSpec& cluster, int view);

/// Sets the figures of `cluster` to the weakest among the groups of the range, the number of nodes
/// to that of all groups, and the price to the mean over the nodes of the range.
void set_to_weakest(ClusterSpec& cluster, GroupRange range);

/// Nodes of the groups of a range.
std::int64_t nodes_of(const ClusterSpec& cluster, GroupRange range);
/// First rank of a group; of the number of groups: that of all GPUs.
std::int64_t first_rank_of(const ClusterSpec& cluster, int group);

/// The cluster without these ranks' GPUs: of one node that many fewer GPUs; of several, which are
/// all alike in size, none that had such a rank. nullopt where nothing is left.
std::optional<ClusterSpec> cluster_without(const ClusterSpec& cluster, std::span<const int> ranks);

/// The group that has a rank, and its device; the cluster's device where all are alike.
int group_of(const ClusterSpec& cluster, int rank);
const DeviceSpec& device_of(const ClusterSpec& cluster, int rank);

/// GPU types of a view, each once: {"A100-SXM-80GB", "H100-SXM-80GB"}.
std::vector<std::string> types_of(const ClusterSpec& cluster, int view);
/// "H100-SXM-80GB", "A100-SXM-80GB+H100-SXM-80GB".
std::string type_name(const ClusterSpec& cluster, int view);

}  // namespace tessera
