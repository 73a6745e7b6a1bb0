// Another network or a hurt machine, set by hand: what a step would take there.
//
// Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "cost_models/spec/cluster_spec.h"

namespace tessera {

/// What is set beside the constants.
struct MachineSettings {
  std::vector<std::int64_t> lost_card_of;  // nodes, once for each card that does not work
  std::map<int, double> slow_ranks;        // what their compute takes, over that of the others
  bool operator==(const MachineSettings&) const = default;
};

/// Of `words` (NAME=VALUE) takes those that name a cluster's network or its GPUs, and returns the
/// others:
///
///   nic_bytes_per_s, nics_per_node, oversubscription, nodes_per_leaf   the cluster's keys
///   gpus_per_switch, gb_s_per_switch_one_way, gpus_per_socket, gb_s_per_socket_one_way   likewise,
///                                                      of intra_node; 0 GPUs: none share one
///   rails                                              1: cards of a number share a leaf, 0: not
///   lost_nics/NODE                                     cards of a node that do not work
///   slow_rank/RANK                                     factor of a rank's computing time
///
/// Names given twice and values out of range are Problems of `--set`.
std::vector<std::string> set_machine(ClusterSpec& cluster, MachineSettings& settings,
                                     std::span<const std::string> words, Problems& problems);

}  // namespace tessera
