// Which links a collective crosses, and how many bytes: the network stage of closed-form
// collectives (cost_models/collective.h) link by link.
//
// NCCL builds a ring through the nodes for each card that a node's members use, and gives each an
// equal part of the buffer: member c of a node sends to member c of the next. Within a node every
// member sends and receives what the closed form says. Where all nodes have as many members and all
// GPUs of a node communicate at once, a flow over these links takes as long as the closed form's
// network stage; where fewer do, less, as the cards are theirs alone. Links that GPUs of a node
// share on the way to one another are crossed by a ring through a group's members in their order,
// or by a message from each of them to each other one. Bytes as raw doubles; pure functions.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "cost_models/collective.h"
#include "simulator/network/cluster_network.h"

namespace tessera {

/// Weights of links, for each byte that a member's own card carries one way.
using LinkWeights = std::map<int, double>;

/// Adds the network's links of one group; nothing where it lies on one node.
void add_collective(const ClusterNetwork& network, Collective collective,
                    std::span<const int> members, LinkWeights& weights);
/// Adds those of what one GPU sends to all of its group in an all-to-all.
void add_sends(const ClusterNetwork& network, int source, std::span<const int> members,
               LinkWeights& weights);
/// Adds those of a message from one GPU to another on another node.
void add_message(const ClusterNetwork& network, int source, int destination, LinkWeights& weights);

/// Adds, for each byte on the wire of a member, what crosses the links that GPUs of a node share,
/// ports left out; nothing where the group lies on several nodes.
void add_within(const ClusterNetwork& network, Collective collective, std::span<const int> members,
                LinkWeights& weights);
/// Of what one GPU sends to all of its group, and of a message.
void add_sends_within(const ClusterNetwork& network, int source, std::span<const int> members,
                      LinkWeights& weights);
void add_message_within(const ClusterNetwork& network, int source, int destination,
                        LinkWeights& weights);

/// The shape of a group of these ranks.
GroupShape shape_of(const ClusterSpec& cluster, std::span<const int> members);
/// The most of each of two shapes' figures.
GroupShape widest(const GroupShape& one, const GroupShape& other);

/// Bytes that a member moves one way: over its card, and over its port within the node.
struct MemberBytes {
  Traffic card, port;
};
/// `bytes` as wire_bytes counts them.
MemberBytes member_bytes(Collective collective, Traffic bytes, GroupShape group);

}  // namespace tessera
