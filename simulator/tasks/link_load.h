// What crosses a link of the cluster over a run: the data of a view of link load.
//
// `simulate` fills one LinkLoad for each link that something crosses (Simulation::links): network
// cards and leaf uplinks of the network, what GPUs of a node share (PCIe switches, sockets), and
// every GPU's port to its node's fabric, ways apart, in the order of link numbers
// (network/cluster_network.h). While a replica generates its ranks' ports carry what its layers and
// stages exchange, evenly over its passes, each stage the mean of all, and its cards what of it
// crosses nodes; not counted are what replicas in lockstep pad, and a reshard whose exact transfers
// a plan does not have. Nanoseconds from the start of the timeline, bytes, bytes per second; plain
// values that their owner may copy and share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cost_models/spec/workload.h"
#include "simulator/network/cluster_network.h"
#include "simulator/tasks/task_graph.h"

namespace tessera {

/// What one kind of exchange of one phase puts on a link.
struct LinkUse {
  Phase phase = Phase::gen;
  Exchange exchange = Exchange::none;
  std::int64_t bytes = 0;
  int first_window = 0;
  std::vector<float> load;  // as LinkLoad::load, from that window to the last with any
  bool operator==(const LinkUse&) const = default;
};

struct LinkLoad {
  int link = 0;  // number in the ClusterNetwork
  LinkKind kind = LinkKind::card;
  std::string name;        // "node 3, card 1, out"; "leaf 0, in"; "GPU 5, out"
  std::vector<int> ranks;  // whose bytes it carries, ascending
  double bytes_per_s = 0;  // what it carries at most, one way
  std::int64_t bytes = 0;  // that crossed it in the run
  double busy_share = 0;   // of the run: time in which anything crosses it
  double mean_load = 0;    // `bytes` over what it could have carried in the run
  double most_load = 0;    // of `load`
  /// Share of `bytes_per_s` in each of equal windows of the run, of Simulation::load_window_ns
  /// each.
  std::vector<float> load;
  std::vector<LinkUse> uses;  // by phase and exchange; their loads add up to `load`
  bool operator==(const LinkLoad&) const = default;
};

}  // namespace tessera
