#include "simulator/reshard/arrivals.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "cost_models/layout/box.h"
#include "simulator/network/cluster_network.h"
#include "simulator/network/flows.h"

namespace tessera {
namespace {

struct Moved {
  std::int64_t intra = 0, inter = 0;  // bytes within the node and to or from others
  std::map<int, std::int64_t> peers;  // by rank: bytes of it
  MovedBytes bytes() const { return {Bytes{intra}, Bytes{inter}}; }
};

/// What every rank exchanges.
struct Exchange {
  std::map<int, Moved> received, sent;
  /// Bytes by source and destination, of those that share links.
  std::map<std::pair<int, int>, std::int64_t> shared;
};

Exchange exchange_of(std::span<const Transfer> transfers, std::span<const Bytes> elements,
                     const ClusterSpec& cluster) {
  const std::int64_t gpus_per_node = cluster.gpus_per_node;
  Exchange all;
  for (const Transfer& transfer : transfers) {
    if (transfer.source == transfer.destination) continue;
    const bool same = transfer.source / gpus_per_node == transfer.destination / gpus_per_node;
    const auto tensor = elements.size() == 1 ? 0 : static_cast<std::size_t>(transfer.tensor);
    const std::int64_t bytes = volume(transfer.box) * elements[tensor].value;
    Moved& received = all.received[transfer.destination];
    for (Moved* const moved : {&received, &all.sent[transfer.source]}) {
      (same ? moved->intra : moved->inter) += bytes;
    }
    received.peers[transfer.source] += bytes;
    const bool shares = !same || cluster.shares_within();
    if (shares) all.shared[{transfer.source, transfer.destination}] += bytes;
  }
  return all;
}

/// By destination: how long its bytes take over links that all share, those of its own node (where
/// GPUs share any) and from others. Empty where no links are shared.
std::map<int, SharedSeconds> shared_arrivals(const Exchange& exchange, const Machines& machines) {
  if (!shares_links(machines.cluster) || exchange.shared.empty()) return {};
  int last = 0;
  for (const auto& [ends, bytes] : exchange.shared)
    last = std::max({last, ends.first, ends.second});
  const ClusterNetwork network = cluster_network(machines.cluster, machines.calibration, last + 1);
  // A port that passes less than its stated rate is full then.
  const double port = kReachedRate * network.port_rate /
                      copy_bandwidth(machines.cluster, machines.calibration).value;
  std::vector<Flow> flows;
  for (const auto& [ends, bytes] : exchange.shared) {
    Flow& flow = flows.emplace_back();
    flow.links = network.path(ends.first, ends.second);
    flow.bytes = static_cast<double>(bytes);
    for (const int link : flow.links) flow.weights.push_back(network.is_port(link) ? port : 1);
  }
  const std::vector<double> finished = finish_times(network.flow_capacity(), flows);
  std::map<int, SharedSeconds> arrivals;
  std::size_t flow = 0;
  for (const auto& [ends, bytes] : exchange.shared) {
    SharedSeconds& arrival = arrivals[ends.second];
    const bool same = ends.first / network.gpus_per_node == ends.second / network.gpus_per_node;
    Seconds& part = same ? arrival.within : arrival.across;
    part = std::max(part, Seconds{finished[flow++]});
  }
  return arrivals;
}

/// Where what GPUs of a node share is simulated.
ClusterSpec with_own_links(ClusterSpec cluster) {
  cluster.pcie_switch = cluster.socket = {};
  return cluster;
}

/// Seconds of every destination on one kind of machines, in the order of `received`.
std::vector<Seconds> seconds_on(const Exchange& exchange, int ranks, const ReshardTravel& travel,
                                const Machines& on) {
  const Seconds barriers =
      2 * barrier_seconds(group_shape(on.cluster, ranks, 1), on.cluster, on.calibration);
  const std::map<int, SharedSeconds> shared = shared_arrivals(exchange, on);
  const ClusterSpec own = with_own_links(on.cluster);
  std::map<int, Seconds> sending;
  for (const auto& [rank, moved] : exchange.sent) {
    sending[rank] = arrival_seconds({}, 0, moved.bytes(), own, on.calibration);
  }
  std::vector<Seconds> seconds;
  for (const auto& [rank, moved] : exchange.received) {
    const int busiest =
        std::max_element(moved.peers.begin(), moved.peers.end(), [&](auto& one, auto& other) {
          return sending.at(one.first) < sending.at(other.first);
        })->first;
    const auto found = shared.find(rank);
    const auto known = found == shared.end() ? std::nullopt : std::optional(found->second);
    seconds.push_back(barriers + travel_seconds(moved.bytes(), static_cast<int>(moved.peers.size()),
                                                exchange.sent.at(busiest).bytes(), travel, own,
                                                on.calibration, known));
  }
  return seconds;
}

}  // namespace

std::vector<Arrival> arrivals_of(std::span<const Transfer> transfers,
                                 std::span<const Bytes> elements, int ranks,
                                 const ReshardTravel& travel, std::span<const Machines> ends) {
  const Exchange exchange = exchange_of(transfers, elements, ends.front().cluster);
  std::vector<Arrival> arrivals;
  for (const auto& [rank, moved] : exchange.received) {
    arrivals.push_back(
        {rank, moved.intra + moved.inter, {}, {moved.peers.begin(), moved.peers.end()}});
  }
  for (const Machines& end : ends) {
    const std::vector<Seconds> seconds = seconds_on(exchange, ranks, travel, end);
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      arrivals[i].seconds = std::max(arrivals[i].seconds, seconds[i]);
    }
  }
  return arrivals;
}

}  // namespace tessera
