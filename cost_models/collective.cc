#include "cost_models/collective.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace tessera {
namespace {

constexpr Seconds kRingHop{3.4e-6};  // NVLink, Simple (NCCL src/graph/tuning.cc)

struct Curve {
  Seconds alpha;
  BytesPerSecond bandwidth;
  Seconds ramp;

  Seconds seconds(Traffic wire) const {
    return alpha + wire / bandwidth + ramp * std::sqrt(wire.value / 1e6);
  }
};

// Stand-ins for a collective that nobody measured: those with the same pattern on the wire.
std::array<Collective, 3> stand_ins(Collective collective) {
  switch (collective) {
    case Collective::broadcast:
      return {Collective::broadcast, Collective::all_gather, Collective::all_reduce};
    case Collective::send_receive:
      return {Collective::send_receive, Collective::all_to_all, Collective::all_gather};
    case Collective::copy_engine:
      return {Collective::copy_engine, Collective::send_receive, Collective::all_gather};
    case Collective::reduce_scatter:
      return {Collective::reduce_scatter, Collective::all_gather, Collective::all_reduce};
    default:
      return {collective, Collective::all_gather, Collective::all_reduce};
  }
}

Curve between(const CollectiveConstants& low, const CollectiveConstants& high, int ranks) {
  if (low.ranks == high.ranks) {
    return {low.alpha_s, low.bandwidth, low.ramp_s};
  }
  const double linear = static_cast<double>(ranks - low.ranks) / (high.ranks - low.ranks);
  const double inverse = (1.0 / low.ranks - 1.0 / ranks) / (1.0 / low.ranks - 1.0 / high.ranks);
  const auto mix = [](double a, double b, double w) { return a + (b - a) * w; };
  return {Seconds{mix(low.alpha_s, high.alpha_s, linear)},
          BytesPerSecond{mix(low.bandwidth, high.bandwidth, inverse)},
          Seconds{mix(low.ramp_s, high.ramp_s, inverse)}};
}

// Constants of one collective on groups of `nodes` nodes (1, or several), at `ranks` ranks.
bool find_curve(Collective collective, int ranks, bool several_nodes,
                const Calibration& calibration, Curve& curve) {
  const CollectiveConstants *low = nullptr, *high = nullptr;
  for (const CollectiveConstants& entry : calibration.collectives) {
    if (entry.collective != collective || (entry.nodes > 1) != several_nodes) continue;
    if (entry.ranks <= ranks && (low == nullptr || entry.ranks > low->ranks)) low = &entry;
    if (entry.ranks >= ranks && (high == nullptr || entry.ranks < high->ranks)) high = &entry;
  }
  if (low == nullptr && high == nullptr) return false;
  if (low == nullptr) low = high;
  if (high == nullptr) high = low;
  curve = between(*low, *high, ranks);
  return true;
}

Curve node_curve(Collective collective, int ranks, const ClusterSpec& cluster,
                 const Calibration& calibration) {
  Curve curve;
  for (const Collective candidate : stand_ins(collective)) {
    if (find_curve(candidate, ranks, false, calibration, curve)) return curve;
  }
  // NCCL's base and hop latency of a ring (src/graph/tuning.cc).
  return {Seconds{6.6e-6} + kRingHop * (ranks - 1), kReachedRate * cluster.intra_per_gpu, {}};
}

/// Seconds that a byte on the wire of each rank takes over one of `link`, which `over` groups of
/// `ranks` of the node cross at once.
double byte_seconds(Collective collective, const SharedLink& link, int over, int ranks) {
  if (over == 0) return 0;
  double crossings = over;
  if (collective == Collective::all_to_all || collective == Collective::copy_engine) {
    const auto behind = static_cast<double>(link.gpus);
    crossings = behind * (ranks - behind / over) / (ranks - 1);
  }
  return crossings / (kReachedRate * link.rate.value);
}

/// Of a group within a node, or of its part there.
double shared_byte_seconds(Collective collective, GroupShape group, const ClusterSpec& cluster) {
  const int ranks = (group.ranks + group.nodes - 1) / group.nodes;
  return std::max(byte_seconds(collective, cluster.pcie_switch, group.over_switch, ranks),
                  byte_seconds(collective, cluster.socket, group.over_socket, ranks));
}

Curve within_node(Collective collective, GroupShape group, const ClusterSpec& cluster,
                  const Calibration& calibration) {
  const int ranks = (group.ranks + group.nodes - 1) / group.nodes;
  Curve curve = node_curve(collective, ranks, cluster, calibration);
  const double shared = shared_byte_seconds(collective, group, cluster);
  if (shared * curve.bandwidth.value > 1) curve.bandwidth = BytesPerSecond{1 / shared};
  return curve;
}

/// Groups like one with these GPUs of a node that cross one of `link`: all GPUs behind it are in
/// such groups, each of which has as many of them.
int crossings(const SharedLink& link, std::span<const int> places) {
  if (link.gpus == 0) return 0;
  std::map<std::int64_t, int> behind;
  for (const int place : places) ++behind[place / link.gpus];
  if (behind.size() < 2) return 0;
  int most = 0;
  for (const auto& [number, count] : behind) most = std::max(most, count);
  return std::max(1, static_cast<int>(link.gpus) / most);
}

// The part of a group's collective that crosses nodes: bytes per network card and latency hops.
struct AcrossNodes {
  Traffic bytes;
  double hops = 0;
};

AcrossNodes across_nodes(Collective collective, Traffic bytes, GroupShape group) {
  const double nodes = group.nodes;
  const double per_node = std::max(1.0, static_cast<double>(group.ranks) / nodes);
  const double share = (nodes - 1) / nodes;
  switch (collective) {
    case Collective::all_reduce:
      return {2 * share * bytes / per_node, 2 * std::log2(nodes)};  // tree latency, as NCCL's
    case Collective::all_gather:
    case Collective::reduce_scatter:
      return {share * bytes / per_node, nodes - 1};
    case Collective::all_to_all:
      return {share * bytes, nodes - 1};
    case Collective::broadcast:
      return {bytes / per_node, std::log2(nodes)};
    default:
      return {bytes, 1};
  }
}

}  // namespace

GroupShape group_shape(const ClusterSpec& cluster, int count, int stride, int first) {
  const auto per_node = static_cast<int>(cluster.gpus_per_node);
  const int last = first + (count - 1) * stride;
  GroupShape shape{count, std::min(count, last / per_node - first / per_node + 1)};
  if (shape.nodes > 1 && has_leaves(cluster)) {
    shape.leaves = leaf_shares(cluster, {.gpus = cluster.gpus(),
                                         .ranks = static_cast<double>(count),
                                         .nodes = static_cast<double>(shape.nodes),
                                         .step = stride,
                                         .extent = std::int64_t{count} * stride,
                                         .members = static_cast<double>(count)});
  }
  if (!cluster.shares_within()) return shape;
  std::vector<int> places;
  for (int rank = first; rank <= last && rank / per_node == first / per_node; rank += stride) {
    places.push_back(rank % per_node);
  }
  return with_crossings(shape, cluster, places);
}

GroupShape with_crossings(GroupShape shape, const ClusterSpec& cluster,
                          std::span<const int> places) {
  shape.over_switch = std::max(shape.over_switch, crossings(cluster.pcie_switch, places));
  shape.over_socket = std::max(shape.over_socket, crossings(cluster.socket, places));
  return shape;
}

Traffic wire_bytes(Collective collective, Traffic bytes, int ranks) {
  const double share = static_cast<double>(ranks - 1) / ranks;
  switch (collective) {
    case Collective::all_reduce:
      return 2 * share * bytes;
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      return share * bytes;
    default:
      return bytes;
  }
}

BytesPerSecond inter_node_bandwidth(const ClusterSpec& cluster, const Calibration& calibration) {
  const double cards = static_cast<double>(std::max<std::int64_t>(1, cluster.nics_per_node));
  return cards * cluster.nic / static_cast<double>(cluster.gpus_per_node) /
         std::max(1.0, cluster.blocking()) * calibration.inter_efficiency.value;
}

BytesPerSecond inter_node_bandwidth(Collective collective, const GroupShape& group,
                                    const ClusterSpec& cluster, const Calibration& calibration) {
  const LeafShares& leaves = group.leaves;
  const double share = collective == Collective::all_to_all ? leaves.pairs : leaves.ring;
  const double blocking = std::max(1.0, cluster.blocking());
  return blocking / std::max(1.0, blocking * share) * inter_node_bandwidth(cluster, calibration);
}

namespace {

/// What was asked of NCCL over its own choice, by its model.
double asked_over_chosen(Collective collective, Traffic bytes, GroupShape group,
                         const ClusterSpec& cluster, const NcclChoice& asked) {
  constexpr std::array kChosen{
      std::pair{Collective::all_reduce, NcclCollective::all_reduce},
      std::pair{Collective::all_gather, NcclCollective::all_gather},
      std::pair{Collective::reduce_scatter, NcclCollective::reduce_scatter}};
  const auto found = std::find_if(kChosen.begin(), kChosen.end(),
                                  [&](const auto& pair) { return pair.first == collective; });
  const auto machine = nccl_machine(cluster);
  if (found == kChosen.end() || !machine) return 1;
  const auto time = [&](const NcclChoice& set) {
    return nccl_pick(found->second, bytes, group.ranks, group.nodes, *machine, set).time;
  };
  return time(asked) / time({});
}

Seconds chosen_seconds(Collective collective, Traffic bytes, GroupShape group,
                       const ClusterSpec& cluster, const Calibration& calibration) {
  const Traffic wire = wire_bytes(collective, bytes, group.ranks);
  if (group.nodes <= 1) {
    return within_node(collective, group, cluster, calibration).seconds(wire);
  }
  Curve measured;
  if (find_curve(collective, group.ranks, true, calibration, measured)) {
    return measured.seconds(wire);
  }
  const AcrossNodes across = across_nodes(collective, bytes, group);
  // A ring passes every rank of a node before it leaves it (NCCL has rings alone for these two).
  const bool ring =
      collective == Collective::all_gather || collective == Collective::reduce_scatter;
  const double inside_hops = ring ? group.ranks - group.nodes : 0;
  const BytesPerSecond rate = inter_node_bandwidth(collective, group, cluster, calibration);
  const Seconds inter = across.bytes / rate +
                        across.hops * Seconds{calibration.inter_latency_s.value} +
                        inside_hops * kRingHop;
  const int per_node = (group.ranks + group.nodes - 1) / group.nodes;
  const bool point_to_point =
      collective == Collective::send_receive || collective == Collective::copy_engine;
  if (per_node <= 1 || point_to_point) return inter;
  const Traffic inside = wire_bytes(collective, bytes, per_node);
  return inter + within_node(collective, group, cluster, calibration).seconds(inside);
}

}  // namespace

Seconds collective_seconds(Collective collective, Traffic bytes, GroupShape group,
                           const ClusterSpec& cluster, const Calibration& calibration) {
  if (group.ranks <= 1 || bytes <= 0) return {};
  const Seconds chosen = chosen_seconds(collective, bytes, group, cluster, calibration);
  if (!calibration.nccl.any()) return chosen;
  return asked_over_chosen(collective, bytes, group, cluster, calibration.nccl) * chosen;
}

WithinRates rates_within(Collective collective, GroupShape group, const ClusterSpec& cluster,
                         const Calibration& calibration) {
  const int ranks = (group.ranks + group.nodes - 1) / group.nodes;
  return {node_curve(collective, ranks, cluster, calibration).bandwidth,
          within_node(collective, group, cluster, calibration).bandwidth};
}

MovedBytes spread_within(Traffic bytes, const ClusterSpec& cluster) {
  const auto node = static_cast<double>(cluster.gpus_per_node);
  const auto over = [&](const SharedLink& link) {
    const auto behind = static_cast<double>(link.gpus);
    return link.gpus == 0 || behind >= node ? Traffic{} : bytes * (node - behind) / (node - 1);
  };
  return {bytes, {}, over(cluster.pcie_switch), over(cluster.socket)};
}

Seconds shared_seconds(const MovedBytes& moved, const ClusterSpec& cluster) {
  const auto taken = [](const SharedLink& link, Traffic each) {
    if (each <= 0) return Seconds{};
    return static_cast<double>(link.gpus) * each / (kReachedRate * link.rate);
  };
  return std::max(taken(cluster.pcie_switch, moved.over_switch),
                  taken(cluster.socket, moved.over_socket));
}

BytesPerSecond copy_bandwidth(const ClusterSpec& cluster, const Calibration& calibration) {
  return node_curve(Collective::copy_engine, 2, cluster, calibration).bandwidth;
}

Seconds barrier_seconds(GroupShape group, const ClusterSpec& cluster,
                        const Calibration& calibration) {
  return collective_seconds(Collective::all_reduce, Traffic{4}, group, cluster, calibration);
}

Seconds reshard_seconds(Traffic intra, Traffic inter, int messages, const ClusterSpec& cluster,
                        const Calibration& calibration) {
  const Curve copy = node_curve(Collective::copy_engine, 2, cluster, calibration);
  Seconds seconds;
  if (intra > 0) seconds = intra / copy.bandwidth + copy.ramp * std::sqrt(intra.value / 1e6);
  if (inter > 0) {
    seconds = std::max(seconds, inter / inter_node_bandwidth(cluster, calibration) +
                                    Seconds{calibration.inter_latency_s.value});
  }
  return seconds + copy.alpha * messages;
}

Traffic over_uplinks(const MovedBytes& moved, const ClusterSpec& cluster) {
  return std::max(moved.inter / std::max(1.0, cluster.blocking()), moved.inter - moved.under_leaf);
}

Seconds arrival_seconds(const MovedBytes& received, int messages, const MovedBytes& busiest,
                        const ClusterSpec& cluster, const Calibration& calibration) {
  const auto own = [&](const MovedBytes& moved, int count) {
    return reshard_seconds(moved.intra, over_uplinks(moved, cluster), count, cluster, calibration);
  };
  return std::max({own(received, messages), own(busiest, 0), shared_seconds(received, cluster),
                   shared_seconds(busiest, cluster)});
}

Seconds host_copy_seconds(Traffic bytes, const Calibration& calibration) {
  return bytes / BytesPerSecond{calibration.host_bandwidth.value};
}

}  // namespace tessera
