// SPDX-License-Identifier: GPL-3.0-or-later
// A node as `nvidia-smi topo -m` prints it: how many GPUs it has, how they are joined, and which
// network cards are near them.
//
// The text names no GPU and no rate: those are of the cluster that it is laid over. Pure but for
// reading; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "cost_models/documents/problem_list.h"
#include "cost_models/spec/cluster_spec.h"

namespace tessera::gui {

struct NodeTopology {
  std::int64_t gpus = 0;
  /// NVLink links of the GPU that has the fewest; 0: not all pairs of GPUs are joined by NVLink.
  std::int64_t links = 0;
  /// Network cards that share a PCIe switch with a GPU; where none does, all that there are.
  std::int64_t cards = 0;
  /// GPUs of consecutive numbers behind one PCIe switch (PIX, PXB), and on one socket (all but
  /// SYS), where NVLink does not join them all; 0: all of the node, or each alone, or no such row.
  std::int64_t gpus_per_switch = 0, gpus_per_socket = 0;
  bool operator==(const NodeTopology&) const = default;
};

/// nullopt and Problems with their lines where it is no such table.
std::optional<NodeTopology> parse_topology(std::string_view text, const std::string& file,
                                           Problems& problems);
std::optional<NodeTopology> read_topology(const std::filesystem::path& file, Problems& problems);

/// The cluster with nodes like that one. A link carries 25 GB/s a way (NVLink 2 to 4), where the
/// cluster's GPUs have 600 GB/s or more 50 (NVLink 5); GPUs without NVLink between all of them have
/// what a cluster says whose GPUs are joined by PCIe, and share the switches and sockets of the
/// topology: at the rates that the cluster states, else a switch's uplink is as fast as a GPU's own
/// link, and a socket's 20 GB/s. Problems where the cluster has several GPU
/// types, or states no such rate.
ClusterSpec with_topology(ClusterSpec cluster, const NodeTopology& topology, Problems& problems);

}  // namespace tessera::gui
