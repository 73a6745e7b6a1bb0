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
  std::map<std::pair<int, int>, std::int64_t> between;  // nodes: bytes by source, destination
};

Exchange exchange_of(std::span<const Transfer> transfers, std::span<const Bytes> elements,
                     std::int64_t gpus_per_node) {
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
    if (!same) all.between[{transfer.source, transfer.destination}] += bytes;
  }
  return all;
}

/// By destination: how long its bytes from other nodes take over links that all share. Empty where
/// no links are shared.
std::map<int, Seconds> shared_arrivals(const Exchange& exchange, const Machines& machines) {
  if (!shares_links(machines.cluster) || exchange.between.empty()) return {};
  int last = 0;
  for (const auto& [ends, bytes] : exchange.between)
    last = std::max({last, ends.first, ends.second});
  const ClusterNetwork network = cluster_network(machines.cluster, machines.calibration, last + 1);
  std::vector<Flow> flows;
  for (const auto& [ends, bytes] : exchange.between) {
    flows.push_back({network.path(ends.first, ends.second), static_cast<double>(bytes), 0});
  }
  const std::vector<double> finished = finish_times(network.capacity, flows);
  std::map<int, Seconds> arrivals;
  std::size_t flow = 0;
  for (const auto& [ends, bytes] : exchange.between) {
    Seconds& arrival = arrivals[ends.second];
    arrival = std::max(arrival, Seconds{finished[flow++]});
  }
  return arrivals;
}

/// Seconds of every destination on one kind of machines, in the order of `received`.
std::vector<Seconds> seconds_on(const Exchange& exchange, int ranks, const ReshardTravel& travel,
                                const Machines& on) {
  const Seconds barriers =
      2 * barrier_seconds(group_shape(on.cluster, ranks, 1), on.cluster, on.calibration);
  std::map<int, Seconds> sending;
  for (const auto& [rank, moved] : exchange.sent) {
    sending[rank] = arrival_seconds({}, 0, moved.bytes(), on.cluster, on.calibration);
  }
  const std::map<int, Seconds> shared = shared_arrivals(exchange, on);
  std::vector<Seconds> seconds;
  for (const auto& [rank, moved] : exchange.received) {
    const int busiest =
        std::max_element(moved.peers.begin(), moved.peers.end(), [&](auto& one, auto& other) {
          return sending.at(one.first) < sending.at(other.first);
        })->first;
    const auto found = shared.find(rank);
    const auto across = found == shared.end() ? std::nullopt : std::optional(found->second);
    seconds.push_back(barriers + travel_seconds(moved.bytes(), static_cast<int>(moved.peers.size()),
                                                exchange.sent.at(busiest).bytes(), travel,
                                                on.cluster, on.calibration, across));
  }
  return seconds;
}

}  // namespace

std::vector<Arrival> arrivals_of(std::span<const Transfer> transfers,
                                 std::span<const Bytes> elements, int ranks,
                                 const ReshardTravel& travel, std::span<const Machines> ends) {
  const Exchange exchange = exchange_of(transfers, elements, ends.front().cluster.gpus_per_node);
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
