// What NCCL's own tuning model says a collective takes, by algorithm and protocol.
//
// The model by which NCCL chooses them (src/graph/tuning.cc and src/tuning of NCCL 2.27 to 2.29;
// the constants and the table of trees are its own): a latency by steps and a bandwidth by
// channels. Bytes are the whole buffer's. It chooses and compares; what a machine takes is
// measured (calibration.h). Not modelled are collective networks (SHARP), PAT, and the latency of
// network cards. Pure functions of plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cost_models/spec/cluster_spec.h"
#include "cost_models/spec/units.h"

namespace tessera {

enum class NcclAlgorithm : std::uint8_t { tree, ring, nvls, nvls_tree };
enum class NcclProtocol : std::uint8_t { ll, ll128, simple };
/// Names as NCCL_ALGO and NCCL_PROTO take them, in any case: "Tree", "NVLSTree", "LL128".
std::optional<NcclAlgorithm> nccl_algorithm(std::string_view name);
std::optional<NcclProtocol> nccl_protocol(std::string_view name);

/// What is set by NCCL_ALGO and NCCL_PROTO; nullopt leaves the choice to NCCL.
struct NcclChoice {
  std::optional<NcclAlgorithm> algorithm;
  std::optional<NcclProtocol> protocol;

  bool any() const { return algorithm || protocol; }
  bool operator==(const NcclChoice&) const = default;
};

/// The collectives among which NCCL chooses an algorithm; all others have one.
enum class NcclCollective : std::uint8_t { all_reduce, all_gather, reduce_scatter };

/// What the model asks of a machine; rates one way.
struct NcclMachine {
  int generation = 90;     // compute capability: 80, 90, 100
  BytesPerSecond nvlink;   // of a GPU, as its data sheet says
  bool multicast = false;  // NVSwitch that sums (NVLS): from generation 90 on
  std::int64_t cards = 1;  // of a node
  BytesPerSecond card;
};

/// nullopt: a GPU or a link within the node of which the model has no constants.
std::optional<NcclMachine> nccl_machine(const ClusterSpec& cluster);

/// nullopt: the machine or the collective has no such algorithm or protocol. Preconditions: at
/// least two ranks, as many on each node.
std::optional<Seconds> nccl_time(NcclCollective collective, Traffic bytes, int ranks, int nodes,
                                 const NcclMachine& machine, NcclAlgorithm algorithm,
                                 NcclProtocol protocol);

struct NcclPick {
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  NcclProtocol protocol = NcclProtocol::simple;
  Seconds time;
};
/// The fastest of those that are left by what is set; an algorithm that the collective does not
/// have leaves all, as NCCL does.
NcclPick nccl_pick(NcclCollective collective, Traffic bytes, int ranks, int nodes,
                   const NcclMachine& machine, const NcclChoice& set = {});

}  // namespace tessera
