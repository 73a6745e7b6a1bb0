#include "cost_models/spec/node_groups.h"

#include <algorithm>
#include <functional>
#include <set>

namespace tessera {
namespace {

/// Takes a node away from the group that has it.
void drop_node(std::vector<NodeGroup>& groups, std::int64_t node) {
  for (NodeGroup& group : groups) {
    if (node < group.nodes) {
      --group.nodes;
      return;
    }
    node -= group.nodes;
  }
}

}  // namespace

std::vector<GroupRange> pool_views(const ClusterSpec& cluster) {
  const int count = std::max(1, static_cast<int>(cluster.groups.size()));
  std::vector<GroupRange> views = {{0, count - 1}};
  if (count == 1) return views;
  for (int group = 0; group < count; ++group) views.push_back({group, group});
  for (int first = 0; first < count; ++first) {
    for (int last = first + 1; last < count; ++last) {
      if (last - first + 1 < count) views.push_back({first, last});
    }
  }
  return views;
}

int group_of(const ClusterSpec& cluster, int rank) {
  int group = 0;
  while (group + 1 < static_cast<int>(cluster.groups.size()) &&
         rank >= first_rank_of(cluster, group + 1)) {
    ++group;
  }
  return group;
}

const DeviceSpec& device_of(const ClusterSpec& cluster, int rank) {
  if (cluster.groups.empty()) return cluster.device;
  return cluster.groups[static_cast<std::size_t>(group_of(cluster, rank))].device;
}

int view_of(const ClusterSpec& cluster, std::span<const int> ranks) {
  if (cluster.groups.empty() || ranks.empty()) return 0;
  const auto [least, most] = std::minmax_element(ranks.begin(), ranks.end());
  const GroupRange range{group_of(cluster, *least), group_of(cluster, *most)};
  const auto views = pool_views(cluster);
  return static_cast<int>(std::find(views.begin(), views.end(), range) - views.begin());
}

void set_to_weakest(ClusterSpec& cluster, GroupRange range) {
  const auto begin = cluster.groups.begin() + range.first;
  const auto end = cluster.groups.begin() + range.last + 1;
  const auto slowest = std::min_element(begin, end, [](const NodeGroup& a, const NodeGroup& b) {
    return a.device.peak_bf16.value < b.device.peak_bf16.value;
  });
  cluster.device = slowest->device;
  cluster.intra_link = slowest->intra_link;
  cluster.intra_per_gpu = slowest->intra_per_gpu;
  cluster.inter_fabric = slowest->inter_fabric;
  cluster.nics_per_node = slowest->nics_per_node;
  cluster.nic = slowest->nic;
  const auto weaker = [](auto& mine, const auto& other) {
    if (other.value < mine.value) mine = other;
  };
  double price = 0;
  for (auto group = begin; group != end; ++group) {
    weaker(cluster.device.memory, group->device.memory);
    weaker(cluster.device.hbm, group->device.hbm);
    weaker(cluster.intra_per_gpu, group->intra_per_gpu);
    weaker(cluster.nic, group->nic);
    cluster.nics_per_node = std::min(cluster.nics_per_node, group->nics_per_node);
    price += static_cast<double>(group->nodes) * group->price_per_gpu_hour;
  }
  cluster.price_per_gpu_hour = price / static_cast<double>(nodes_of(cluster, range));
  cluster.nodes = nodes_of(cluster, {0, static_cast<int>(cluster.groups.size()) - 1});
}

ClusterSpec seen_from(const ClusterSpec& cluster, int view) {
  ClusterSpec seen = cluster;
  if (view != 0) set_to_weakest(seen, pool_views(cluster)[static_cast<std::size_t>(view)]);
  seen.groups.clear();
  return seen;
}

std::int64_t nodes_of(const ClusterSpec& cluster, GroupRange range) {
  if (cluster.groups.empty()) return cluster.nodes;
  std::int64_t nodes = 0;
  for (int group = range.first; group <= range.last; ++group) {
    nodes += cluster.groups[static_cast<std::size_t>(group)].nodes;
  }
  return nodes;
}

std::int64_t first_rank_of(const ClusterSpec& cluster, int group) {
  return cluster.gpus_per_node * nodes_of(cluster, {0, group - 1});
}

std::vector<std::string> types_of(const ClusterSpec& cluster, int view) {
  if (cluster.groups.empty()) return {cluster.device.name};
  const GroupRange range = pool_views(cluster)[static_cast<std::size_t>(view)];
  std::vector<std::string> types;
  for (int group = range.first; group <= range.last; ++group) {
    const std::string& name = cluster.groups[static_cast<std::size_t>(group)].device.name;
    if (std::find(types.begin(), types.end(), name) == types.end()) types.push_back(name);
  }
  return types;
}

std::string type_name(const ClusterSpec& cluster, int view) {
  std::string name;
  for (const std::string& type : types_of(cluster, view)) name += (name.empty() ? "" : "+") + type;
  return name;
}

std::optional<ClusterSpec> cluster_without(const ClusterSpec& cluster, std::span<const int> ranks) {
  ClusterSpec left = cluster;
  if (cluster.nodes == 1) {
    left.gpus_per_node -= static_cast<std::int64_t>(std::set(ranks.begin(), ranks.end()).size());
    return left.gpus_per_node > 0 ? std::optional(left) : std::nullopt;
  }
  std::set<std::int64_t, std::greater<>> nodes;  // the last first: the others keep their numbers
  for (const int rank : ranks) nodes.insert(rank / cluster.gpus_per_node);
  left.nodes -= static_cast<std::int64_t>(nodes.size());
  if (left.nodes <= 0) return std::nullopt;
  if (cluster.groups.empty()) return left;
  for (const std::int64_t node : nodes) drop_node(left.groups, node);
  std::erase_if(left.groups, [](const NodeGroup& group) { return group.nodes == 0; });
  set_to_weakest(left, {0, static_cast<int>(left.groups.size()) - 1});
  if (left.groups.size() == 1) left.groups.clear();  // one type: the figures above are its own
  return left;
}

}  // namespace tessera
