// Time of communication between ranks, and of copies.
//
// Pure functions; units as the types say. Sources: nccl-tests doc/PERFORMANCE.md for the bytes on
// the wire; the form alpha + V/B + ramp sqrt(V) fitted to NCCL's curves (calibration.h); the
// two-level form of groups that span nodes is the ring within the node followed by the ring across
// nodes on one network card per GPU (Thakur et al. 2005 for the rings, HybridFlow App. C for the
// levels).
#pragma once

#include <span>

#include "cost_models/calibration.h"
#include "cost_models/leaves/leaf_shares.h"
#include "cost_models/spec/cluster_spec.h"
#include "cost_models/spec/units.h"

namespace tessera {

/// A group of ranks as a network sees it: how many, on how many nodes.
struct GroupShape {
  int ranks = 1;
  int nodes = 1;
  /// Of the groups like this one that all GPUs of a node form, those that cross the uplink of a
  /// PCIe switch, and the link of a socket; 0: none does, or the cluster states no such link.
  int over_switch = 0, over_socket = 0;
  LeafShares leaves;  // of what it sends to other nodes
  bool operator==(const GroupShape&) const = default;
};

/// The shape of a group of `count` global ranks `first, first + stride, ...`.
GroupShape group_shape(const ClusterSpec& cluster, int count, int stride, int first = 0);

/// `shape` with what it crosses within a node, of which it has the GPUs `places` (from 0 on). Of
/// what it crosses already and of this the more counts.
GroupShape with_crossings(GroupShape shape, const ClusterSpec& cluster,
                          std::span<const int> places);

/// Bytes that each rank sends in a collective over n ranks; `bytes` is the whole buffer: the
/// gathered result of all_gather, the input of reduce_scatter and all_reduce, one rank's send
/// buffer of all_to_all, the message of broadcast, send_receive and copies. all_reduce 2 (n-1)/n S;
/// all_gather, reduce_scatter, all_to_all (n-1)/n S; the others S.
Traffic wire_bytes(Collective collective, Traffic bytes, int ranks);

/// Time of one collective. Groups of one rank cost nothing. Constants of the nearest measured group
/// size are interpolated: alpha linearly in n, bandwidth and ramp in 1/n. Where the calibration
/// asks for an algorithm of NCCL's, over what NCCL would choose as its model says.
Seconds collective_seconds(Collective collective, Traffic bytes, GroupShape group,
                           const ClusterSpec& cluster, const Calibration& calibration);

/// One way, per GPU, between nodes: cards x rate / GPUs / oversubscription x efficiency, where all
/// passes uplinks of leaf switches (unless all nodes hang on one).
BytesPerSecond inter_node_bandwidth(const ClusterSpec& cluster, const Calibration& calibration);
/// The same for what a group sends in a collective, of which a part may pass none (`leaves`): the
/// rate of its card, or that at which its part fills the busiest uplink.
BytesPerSecond inter_node_bandwidth(Collective collective, const GroupShape& group,
                                    const ClusterSpec& cluster, const Calibration& calibration);

/// The rate at which the bytes of wire_bytes pass within a node, of a rank.
struct WithinRates {
  BytesPerSecond alone;  // as its own port lets them
  /// Where all groups of its node that are like its own communicate at once: links that they share
  /// may be narrower. A ring crosses such a link once each way; what all ranks send to all others
  /// (all_to_all, copies of copy engines), for each pair.
  BytesPerSecond together;
};
WithinRates rates_within(Collective collective, GroupShape group, const ClusterSpec& cluster,
                         const Calibration& calibration);

/// Part of a link's stated rate that is reached where nobody has measured it.
inline constexpr double kReachedRate = 0.8;

/// One way, per GPU, within a node: what copies reach (copy engines where they were measured).
BytesPerSecond copy_bandwidth(const ClusterSpec& cluster, const Calibration& calibration);

/// Everybody of a group has come: a sum of next to nothing.
Seconds barrier_seconds(GroupShape group, const ClusterSpec& cluster,
                        const Calibration& calibration);

/// Moving weights: the busiest destination receives `intra` bytes from its own node and `inter`
/// bytes from others, in `messages` messages. Both kinds move at the same time; the slower decides.
Seconds reshard_seconds(Traffic intra, Traffic inter, int messages, const ClusterSpec& cluster,
                        const Calibration& calibration);

/// Bytes of one rank, within its node and to or from others.
struct MovedBytes {
  Traffic intra, inter;
  /// Of `intra`, what crosses the uplink of a PCIe switch, and the link of a socket.
  Traffic over_switch = {}, over_socket = {};
  Traffic under_leaf = {};  // of `inter`, what passes no uplink of a leaf switch
};

/// Bytes within a node that come from all others of its GPUs alike.
MovedBytes spread_within(Traffic bytes, const ClusterSpec& cluster);

/// The time of what crosses links that GPUs of a node share, where all behind one move as much.
Seconds shared_seconds(const MovedBytes& moved, const ClusterSpec& cluster);

/// The bytes that would take as long between nodes as these, were all to pass uplinks.
Traffic over_uplinks(const MovedBytes& moved, const ClusterSpec& cluster);

/// When a destination has its weights: its own ports must have taken `received`, and each of its
/// senders have sent all that it sends; `busiest` is the one that takes longest.
Seconds arrival_seconds(const MovedBytes& received, int messages, const MovedBytes& busiest,
                        const ClusterSpec& cluster, const Calibration& calibration);

/// Device to host or back.
Seconds host_copy_seconds(Traffic bytes, const Calibration& calibration);

}  // namespace tessera
