// The links that a plan's tasks cross: their groups' rings and messages over the cluster's network.
//
// Adds the patterns to the graph that it was made with, each once, and sets what tasks move. It
// belongs to whoever builds the graph, and to that one thread. What ranks of tensor, context and
// expert parallel groups exchange between nodes for the layers of a pass is one flow at the end of
// the pass's task, however many layers and collectives they are; what they exchange within a node
// crosses their ports throughout the task.
#pragma once

#include <array>
#include <map>
#include <tuple>
#include <utility>

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
      : network_(network), share_(inter_node_bandwidth(cluster, calibration)) {}

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
  /// What each rank of a replica sends while it generates: to other nodes, and over its port.
  void put_generation(TaskGraph& graph, Task& task, const RoleCosts& costs, int replica,
                      const AcrossNodes& across, Traffic within);
  /// What one rank receives. Its time is known, whatever else crosses the links.
  void put_arrival(TaskGraph& graph, Task& task, const Arrival& arrival) const;

 private:
  using Key = std::tuple<Role, int, Collective, Replicas, int>;
  /// Of tensor, context and expert parallel groups.
  using LayerLinks = std::array<LinkWeights, 3>;
  const LayerLinks& layer_links(const RoleCosts& costs, int replica, int stage);
  void put(Task& task, int pattern, const MemberBytes& moved) const;

  const ClusterNetwork& network_;
  BytesPerSecond share_;  // of a GPU, where all of a node communicate
  std::map<Key, int> known_;
  std::map<std::tuple<Role, int, int>, LayerLinks> layer_links_;   // by replica and stage
  std::map<std::tuple<Role, int, int, int>, int> layer_patterns_;  // and kind of group: of it alone
  /// Of a replica that generates: of its tensor and expert parallel groups, and between its stages.
  struct GenerationLinks {
    LinkWeights tensor, experts, stages;
  };
  const GenerationLinks& generation_links(const RoleCosts& costs, int replica);
  std::map<std::pair<Role, int>, GenerationLinks> generation_links_;  // by replica
  std::map<std::tuple<Role, int, int>, int> generation_patterns_;     // and kind, where it is one
};

}  // namespace tessera
