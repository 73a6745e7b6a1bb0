// The GPUs of a cluster and the links between them, as a cluster YAML describes them.
//
// A plain value. Rates are what the hardware sheet states, one way; what is really reached comes
// from a calibration.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "cost_models/spec/units.h"

namespace tessera {

struct DeviceSpec {
  std::string name;  // "H200-SXM-141GB", or "cpu"
  Bytes memory;
  FlopsPerSecond peak_bf16;
  BytesPerSecond hbm;

  bool operator==(const DeviceSpec&) const = default;
};

/// CPU cores and memory of one node; 0 = not stated.
struct HostSpec {
  std::int64_t cores = 0;
  BytesPerSecond memory;  // all channels together

  bool operator==(const HostSpec&) const = default;
};

/// What consecutive GPUs of a node share on the way to its other GPUs: a PCIe switch's uplink, the
/// link between processor sockets.
struct SharedLink {
  std::int64_t gpus = 0;  // behind one; 0: none is stated
  BytesPerSecond rate;    // one way

  bool operator==(const SharedLink&) const = default;
};

/// Consecutive nodes of one GPU type in a cluster of several.
struct NodeGroup {
  DeviceSpec device;
  std::int64_t nodes = 0;
  std::string intra_link, inter_fabric;  // as in ClusterSpec, and so on
  BytesPerSecond intra_per_gpu;
  std::int64_t nics_per_node = 0;
  BytesPerSecond nic;
  double price_per_gpu_hour = 0.0;

  bool operator==(const NodeGroup&) const = default;
};

struct ClusterSpec {
  std::string name;
  DeviceSpec device;
  std::int64_t gpus_per_node = 0;
  std::int64_t nodes = 0;
  std::string intra_link;        // free text: "NVLink4 + NVSwitch"
  BytesPerSecond intra_per_gpu;  // one way
  SharedLink pcie_switch, socket;
  std::string inter_fabric;  // free text; empty on one node
  std::int64_t nics_per_node = 0;
  BytesPerSecond nic;               // one way, per card
  double oversubscription = 1.0;    // of the leaf switches: down over up
  std::int64_t nodes_per_leaf = 1;  // that share a leaf switch and its uplink
  bool rails = false;               // card c of a leaf's nodes hangs on a switch of its own
  double price_per_gpu_hour = 0.0;  // 0 = not stated
  HostSpec host;
  /// GPU types in the order of the nodes (and so of the ranks), where there are several: then the
  /// figures above are the weakest of each, the price the mean (node_groups.h). Else empty.
  std::vector<NodeGroup> groups;

  std::int64_t gpus() const { return gpus_per_node * nodes; }
  /// Whether GPUs of a node share links on the way to one another.
  bool shares_within() const { return pcie_switch.gpus > 0 || socket.gpus > 0; }
  /// Down over up of what bytes between nodes may have to cross: 1 where all hang on one switch.
  double blocking() const { return rails || nodes > nodes_per_leaf ? oversubscription : 1.0; }
  bool operator==(const ClusterSpec&) const = default;
};

/// Reads a cluster YAML or a preset's name (configs/clusters/NAME.yaml); unknown keys are refused
/// with a suggestion. nullopt when anything was appended to `problems`.
std::optional<ClusterSpec> read_cluster_spec(const std::filesystem::path& where,
                                             Problems& problems);
std::optional<ClusterSpec> parse_cluster_spec(std::string_view text, const std::string& file,
                                              Problems& problems);

}  // namespace tessera
