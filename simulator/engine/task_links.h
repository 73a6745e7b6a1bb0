// The links that a plan's tasks cross: their groups' rings and messages over the cluster's network.
//
// Adds the patterns to the graph that it was made with, each once, and sets what tasks move. It
// belongs to whoever builds the graph, and to that one thread. What ranks of tensor, context and
// expert parallel groups exchange between nodes for the layers of a pass is one flow at the end of
// the pass's task, however many layers and collectives they are; what they exchange within a node
// crosses their ports throughout the task. Where GPUs of a node share links, a task that sends
// nothing to other nodes is such a flow there.
#pragma once

#include <array>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "cost_models/calibration.h"
#include "cost_models/collective.h"
#include "simulator/engine/role_costs.h"
#include "simulator/network/collective_links.h"
#include "simulator/reshard/arrivals.h"
#include "simulator/tasks/task_graph.h"

namespace tessera {

class TaskLinks {
 public:
  /// Keeps references to all but the graph, of which it is told when a pattern is made.
  TaskLinks(const ClusterNetwork& network, const ClusterSpec& cluster,
            const Calibration& calibration)
      : network_(network), cluster_(cluster), calibration_(calibration) {}

  /// Every `stride`-th of the replicas from `begin` on form a group with the same tensor-parallel
  /// rank of a stage.
  struct Replicas {
    int begin = 0, end = 0, stride = 1;
    auto operator<=>(const Replicas&) const = default;
  };
  /// A collective of `bytes` (as wire_bytes counts them) over replicas; the task's duration is set.
  void put_collective(TaskGraph& graph, Task& task, const RoleCosts& costs, int stage,
                      const Replicas& over, Collective collective, Traffic bytes);
  /// `bytes` from each rank of a stage to its neighbour in another one.
  void put_message(TaskGraph& graph, Task& task, const RoleCosts& costs, int replica, int from,
                   int to, Traffic bytes);
  /// What the ranks of a replica's stage send for the layers of a pass: to other nodes, and over
  /// their ports within a node.
  void put_layers(TaskGraph& graph, Task& task, const RoleCosts& costs, int replica, int stage,
                  const ChunkPass& pass);
  /// What each rank of a replica sends in a segment of its generation. Joined segments have what
  /// their parts have: it grows with the tokens.
  void put_generation(TaskGraph& graph, Task& task, const RoleCosts& costs, int replica,
                      const RolloutSegment& segment);
  /// What one rank receives. Its time is known, whatever else crosses the links.
  void put_arrival(TaskGraph& graph, Task& task, const Arrival& arrival) const;

 private:
  using Key = std::tuple<Role, int, Collective, Replicas, int>;
  /// Of tensor, context and expert parallel groups, and between stages.
  using KindLinks = std::array<LinkWeights, 4>;
  /// Of a stage, or of a replica that generates: cards and uplinks, what GPUs of a node share, and
  /// the patterns of each kind alone and of none.
  struct Known {
    KindLinks across, shared;
    std::array<int, 5> patterns{-1, -1, -1, -1, -1};
  };
  /// What a rank sends, by kind.
  struct Sent {
    SentByGroups across, shared;
    Traffic within;
  };
  Known& of_layers(const RoleCosts& costs, int replica, int stage);
  Known& of_generation(const RoleCosts& costs, int replica);
  void put_kinds(TaskGraph& graph, Task& task, const RoleCosts& costs, Known& known,
                 const Sent& sent, std::vector<int> ranks) const;
  /// A flow between nodes of bytes that take so long where every GPU has its equal share.
  void put(Task& task, int pattern, const MemberBytes& moved, Seconds taken) const;
  /// A flow within a node of bytes that take so long where every GPU has its equal share.
  void put_shared(Task& task, Traffic bytes, Seconds taken) const;
  /// The ports of ranks whose bytes pass at such a rate where nothing else crosses their links.
  void add_ports(std::span<const int> ranks, bool in, BytesPerSecond alone, double part,
                 LinkWeights& weights) const;

  const ClusterNetwork& network_;
  const ClusterSpec& cluster_;
  const Calibration& calibration_;
  std::map<Key, int> known_;
  std::map<std::tuple<Role, int, int>, Known> layers_;  // by replica and stage
  std::map<std::pair<Role, int>, Known> generation_;    // by replica
  std::map<int, WithinRates> rates_;                    // of patterns within a node
};

}  // namespace tessera
