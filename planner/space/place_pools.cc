#include "planner/space/place_pools.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "cost_models/spec/node_groups.h"
#include "planner/request/plan_value.h"
#include "planner/space/divisors.h"

namespace tessera {

std::vector<int> block_sizes(const ClusterSpec& cluster) {
  std::vector<int> sizes = divisors(static_cast<int>(cluster.gpus_per_node));
  for (int node = 2; node <= cluster.nodes; ++node) {
    sizes.push_back(node * static_cast<int>(cluster.gpus_per_node));
  }
  return sizes;
}

std::vector<int> place_blocks(const std::vector<int>& sizes, const ClusterSpec& cluster) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  const int per_node = static_cast<int>(cluster.gpus_per_node);
  std::vector<int> first(sizes.size());
  std::vector<int> used;  // GPUs taken on each opened node
  for (const std::size_t block : order) {
    const int size = sizes[block];
    auto node =
        std::find_if(used.begin(), used.end(), [&](int taken) { return size <= per_node - taken; });
    if (node == used.end()) {
      const int nodes = (size + per_node - 1) / per_node;
      if (static_cast<std::int64_t>(used.size()) + nodes > cluster.nodes) return {};
      first[block] = static_cast<int>(used.size()) * per_node;
      used.insert(used.end(), static_cast<std::size_t>(nodes), std::min(size, per_node));
    } else {
      first[block] = static_cast<int>(node - used.begin()) * per_node + *node;
      *node += size;
    }
  }
  return first;
}

namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// A pool over several groups: its nodes in the first and in the last one; those between are its.
struct Span {
  std::size_t pool = 0;
  GroupRange range;
  std::int64_t ends = 0;  // nodes in the first and last group together
  std::int64_t left = 0;  // of them in the first group, once chosen
};

class Packing {
 public:
  Packing(const std::vector<int>& sizes, const std::vector<int>& views, const ClusterSpec& cluster)
      : sizes_(sizes), cluster_(cluster), weights_(billing_weights(cluster)) {
    const auto ranges = pool_views(cluster);
    for (const int view : views) ranges_.push_back(ranges[at(view)]);
  }

  PlacedPools run() {
    for (const NodeGroup& group : cluster_.groups) free_.push_back(group.nodes);
    if (!place_inside() || !collect_spans()) return {};
    choose(0, 0);
    if (!best_) return {};
    return placed();
  }

 private:
  // Pools that lie in one group, counted from its first free node.
  bool place_inside() {
    local_.assign(sizes_.size(), 0);
    for (std::size_t group = 0; group < cluster_.groups.size(); ++group) {
      std::vector<std::size_t> pools;
      std::vector<int> sizes;
      for (std::size_t pool = 0; pool < sizes_.size(); ++pool) {
        if (!ranges_[pool].single() || at(ranges_[pool].first) != group) continue;
        pools.push_back(pool);
        sizes.push_back(sizes_[pool]);
      }
      if (pools.empty()) continue;
      ClusterSpec alone;
      alone.gpus_per_node = cluster_.gpus_per_node;
      alone.nodes = cluster_.groups[group].nodes;
      const std::vector<int> first = place_blocks(sizes, alone);
      if (first.empty()) return false;
      std::int64_t used = 0;
      for (std::size_t i = 0; i < pools.size(); ++i) {
        local_[pools[i]] = first[i];
        used = std::max(used, (first[i] + sizes[i] - 1) / cluster_.gpus_per_node + 1);
      }
      free_[group] -= used;
    }
    return true;
  }

  // Spans in rank order; false where two overlap or others lie where one takes all nodes.
  bool collect_spans() {
    for (std::size_t pool = 0; pool < sizes_.size(); ++pool) {
      const GroupRange range = ranges_[pool];
      if (range.single()) continue;
      Span span{.pool = pool, .range = range, .ends = sizes_[pool] / cluster_.gpus_per_node};
      for (int group = range.first + 1; group < range.last; ++group) {
        const std::int64_t all = cluster_.groups[at(group)].nodes;
        if (free_[at(group)] != all) return false;
        span.ends -= all;
        free_[at(group)] = 0;
      }
      spans_.push_back(span);
    }
    std::sort(spans_.begin(), spans_.end(),
              [](const Span& a, const Span& b) { return a.range.first < b.range.first; });
    for (std::size_t i = 1; i < spans_.size(); ++i) {
      if (spans_[i].range.first < spans_[i - 1].range.last) return false;
    }
    return true;
  }

  // The cheapest division of each span's nodes between its two ends.
  void choose(std::size_t index, double billed) {
    if (index == spans_.size()) {
      if (best_ && billed >= best_billed_) return;
      best_ = spans_;
      best_billed_ = billed;
      return;
    }
    Span& span = spans_[index];
    std::int64_t& first = free_[at(span.range.first)];
    std::int64_t& last = free_[at(span.range.last)];
    const std::int64_t most = std::min(first, span.ends - 1);
    for (std::int64_t left = std::max<std::int64_t>(1, span.ends - last); left <= most; ++left) {
      const std::int64_t right = span.ends - left;
      span.left = left;
      first -= left;
      last -= right;
      choose(index + 1, billed + static_cast<double>(left) * weights_[at(span.range.first)] +
                            static_cast<double>(right) * weights_[at(span.range.last)]);
      first += left;
      last += right;
    }
  }

  PlacedPools placed() const {
    std::vector<std::int64_t> taken(cluster_.groups.size(), 0);  // nodes at each group's begin
    std::vector<double> billed(sizes_.size());
    PlacedPools result;
    result.first_rank.assign(sizes_.size(), 0);
    for (const Span& span : *best_) {
      const std::int64_t right = span.ends - span.left;
      taken[at(span.range.last)] = right;
      result.first_rank[span.pool] = static_cast<int>(
          first_rank_of(cluster_, span.range.first + 1) - span.left * cluster_.gpus_per_node);
      const auto per_node = static_cast<double>(cluster_.gpus_per_node);
      billed[span.pool] =
          per_node * (static_cast<double>(span.left) * weights_[at(span.range.first)] +
                      static_cast<double>(right) * weights_[at(span.range.last)]);
      for (int group = span.range.first + 1; group < span.range.last; ++group) {
        billed[span.pool] +=
            per_node * static_cast<double>(cluster_.groups[at(group)].nodes) * weights_[at(group)];
      }
    }
    for (std::size_t pool = 0; pool < sizes_.size(); ++pool) {
      if (!ranges_[pool].single()) continue;
      const int group = ranges_[pool].first;
      result.first_rank[pool] =
          local_[pool] + static_cast<int>(first_rank_of(cluster_, group) +
                                          taken[at(group)] * cluster_.gpus_per_node);
      billed[pool] = static_cast<double>(sizes_[pool]) * weights_[at(group)];
    }
    result.billed_gpus = std::accumulate(billed.begin(), billed.end(), 0.0);
    return result;
  }

  const std::vector<int>& sizes_;
  const ClusterSpec& cluster_;
  std::vector<double> weights_;
  std::vector<GroupRange> ranges_;
  std::vector<std::int64_t> free_;  // nodes, by group
  std::vector<int> local_;          // first GPU of a pool in its group
  std::vector<Span> spans_;
  std::optional<std::vector<Span>> best_;
  double best_billed_ = 0;
};

}  // namespace

PlacedPools place_pools(const std::vector<int>& sizes, const std::vector<int>& views,
                        const ClusterSpec& cluster) {
  if (!cluster.groups.empty()) return Packing(sizes, views, cluster).run();
  return {place_blocks(sizes, cluster),
          static_cast<double>(std::accumulate(sizes.begin(), sizes.end(), 0))};
}

bool fits_view(const ClusterSpec& cluster, int size, int view) {
  if (cluster.groups.empty()) return true;
  const GroupRange range = pool_views(cluster)[at(view)];
  if (size > nodes_of(cluster, range) * cluster.gpus_per_node) return false;
  if (range.single()) return true;
  if (size % cluster.gpus_per_node != 0) return false;
  return size / cluster.gpus_per_node >= nodes_of(cluster, {range.first + 1, range.last - 1}) + 2;
}

std::vector<double> least_weights(const ClusterSpec& cluster) {
  const std::vector<double> weights = billing_weights(cluster);
  std::vector<double> least;
  for (const GroupRange range : pool_views(cluster)) {
    least.push_back(
        *std::min_element(weights.begin() + range.first, weights.begin() + range.last + 1));
  }
  return least;
}

}  // namespace tessera
