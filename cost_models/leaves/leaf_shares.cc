#include "cost_models/leaves/leaf_shares.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <numeric>

namespace tessera {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

std::int64_t leaf_gpus(const ClusterSpec& cluster) {
  return cluster.nodes_per_leaf * cluster.gpus_per_node;
}

std::int64_t cards_of(const ClusterSpec& cluster) {
  return std::clamp<std::int64_t>(cluster.nics_per_node, 1, cluster.gpus_per_node);
}

/// The leaf switch of a rank's card, numbered in a row.
std::int64_t switch_of(const ClusterSpec& cluster, int rank) {
  const std::int64_t leaf = rank / leaf_gpus(cluster);
  if (!cluster.rails) return leaf;
  const std::int64_t place = rank % cluster.gpus_per_node, cards = cards_of(cluster);
  return leaf * cards + place * cards / cluster.gpus_per_node;
}

/// The most of what leaves a switch, of what its GPUs send.
double busiest(const ClusterSpec& cluster, const std::map<std::int64_t, double>& leaving) {
  double most = 0;
  for (const auto& [leaf, gpus] : leaving) most = std::max(most, gpus);
  const std::int64_t rails = cluster.rails ? cards_of(cluster) : 1;
  return std::min(1.0, most * as_double(rails) / as_double(leaf_gpus(cluster)));
}

/// Calls visit(first, end) for the GPUs of each leaf that differs from the others.
template <class Visit>
void each_leaf(const ClusterSpec& cluster, std::int64_t gpus, std::int64_t extent, Visit visit) {
  const std::int64_t leaf = leaf_gpus(cluster), leaves = (gpus + leaf - 1) / leaf;
  const std::int64_t period = extent / std::gcd(extent, leaf);  // from here on they repeat
  for (std::int64_t i = 0; i < leaves; ++i) {
    if (i >= period && i + 1 < leaves) continue;
    visit(i * leaf, std::min(gpus, (i + 1) * leaf));
  }
}

}  // namespace

bool has_leaves(const ClusterSpec& cluster) {
  return cluster.blocking() > 1 && (cluster.rails || cluster.nodes_per_leaf > 1);
}

LeafShares leaf_shares(const ClusterSpec& cluster, const GroupSpread& groups) {
  const double in_node = groups.ranks / groups.nodes, all = as_double(leaf_gpus(cluster));
  LeafShares most{0, 0};
  each_leaf(cluster, groups.gpus, groups.extent, [&](std::int64_t first, std::int64_t end) {
    LeafShares own{0, 0};
    // Of `gpus` GPUs whose groups have so many members each in this leaf.
    const auto add_pairs = [&](double gpus, double members) {
      const double near = std::max(0.0, members - in_node) / (groups.ranks - in_node);
      own.pairs += gpus * (1 - groups.one_card * near);
    };
    // Members follow one another in a ring: of each of a node's channels one is the last here.
    const auto add_ring = [&](double gpus, double members) {
      own.ring += gpus * std::min(1.0, in_node / members);
    };
    // A part of the groups of one extent lies in this leaf, from `begin` of it on: some steps
    // whole, and parts of one before and one behind, in which not all groups have a member.
    const auto add_cut = [&](std::int64_t begin, std::int64_t part) {
      const std::int64_t step = groups.step, steps = groups.extent / step;
      const std::int64_t before = std::min(part, (step - begin % step) % step);
      const std::int64_t behind = (part - before) % step, whole = (part - before) / step;
      const std::int64_t both = std::max<std::int64_t>(0, before + behind - step);
      const std::int64_t one = before + behind - 2 * both;
      const std::array<std::int64_t, 3> having{step - one - both, one, both};
      for (std::size_t i = 0; i < having.size(); ++i) {
        const std::int64_t here = whole + static_cast<std::int64_t>(i);
        if (here == 0) continue;
        const double members = groups.members * as_double(here) / as_double(steps);
        if (members < groups.ranks) add_ring(as_double(having[i] * here), members);
        add_pairs(as_double(having[i] * here), members);
      }
    };
    const std::int64_t whole_from = (first + groups.extent - 1) / groups.extent * groups.extent;
    const std::int64_t whole_end = end / groups.extent * groups.extent;
    if (whole_from > whole_end) {
      add_cut(first % groups.extent, end - first);
    } else {
      if (whole_from > first) add_cut(first % groups.extent, whole_from - first);
      if (end > whole_end) add_cut(0, end - whole_end);
      const double whole = as_double(whole_end - whole_from);
      if (groups.members < groups.ranks) add_ring(whole, groups.members);
      add_pairs(whole, groups.members);
    }
    most.ring = std::max(most.ring, own.ring / all);
    most.pairs = std::max(most.pairs, own.pairs / all);
  });
  return {std::min(1.0, most.ring), std::min(1.0, most.pairs)};
}

double leaf_share_of_messages(const ClusterSpec& cluster, std::int64_t gpus, std::int64_t step,
                              std::int64_t extent) {
  std::int64_t most = 0;
  each_leaf(cluster, gpus, extent, [&](std::int64_t first, std::int64_t end) {
    std::int64_t leaving = 0;
    for (std::int64_t begin = first / extent * extent; begin < end; begin += extent) {
      const std::int64_t last = std::min(end, begin + extent - step);  // that have a next stage
      leaving += std::max<std::int64_t>(0, last - std::max({first, begin, end - step}));
    }
    most = std::max(most, leaving);
  });
  return as_double(most) / as_double(leaf_gpus(cluster));
}

LeafShares counted_leaf_shares(const ClusterSpec& cluster,
                               std::span<const std::vector<int>> groups) {
  std::map<std::int64_t, double> by_ring, by_pairs;
  for (const std::vector<int>& group : groups) {
    std::map<std::int64_t, std::vector<int>> nodes;
    std::map<std::int64_t, double> under;  // members by switch
    for (const int rank : group) {
      nodes[rank / cluster.gpus_per_node].push_back(rank);
      ++under[switch_of(cluster, rank)];
    }
    if (nodes.size() < 2) continue;
    std::size_t channels = group.size();
    for (const auto& [node, ranks] : nodes) channels = std::min(channels, ranks.size());
    const double part = as_double(static_cast<std::int64_t>(group.size())) /
                        as_double(static_cast<std::int64_t>(nodes.size() * channels));
    for (auto node = nodes.begin(); node != nodes.end(); ++node) {
      const auto next = std::next(node) == nodes.end() ? nodes.begin() : std::next(node);
      for (std::size_t channel = 0; channel < channels; ++channel) {
        const std::int64_t own = switch_of(cluster, node->second[channel]);
        if (own != switch_of(cluster, next->second[channel])) by_ring[own] += part;
      }
      std::map<std::int64_t, double> here;
      for (const int rank : node->second) ++here[switch_of(cluster, rank)];
      const auto others = static_cast<double>(group.size() - node->second.size());
      for (const auto& [own, members] : here) {
        by_pairs[own] += members * (1 - (under[own] - members) / others);
      }
    }
  }
  return {busiest(cluster, by_ring), busiest(cluster, by_pairs)};
}

double counted_leaf_share(const ClusterSpec& cluster,
                          std::span<const std::pair<int, int>> messages) {
  std::map<std::int64_t, double> leaving;
  for (const auto& [from, to] : messages) {
    const bool far = from / cluster.gpus_per_node != to / cluster.gpus_per_node;
    const std::int64_t own = switch_of(cluster, from);
    if (far && own != switch_of(cluster, to)) ++leaving[own];
  }
  return busiest(cluster, leaving);
}

}  // namespace tessera
