#include "planner/interop/files/gpu_types.h"

#include "planner/plan/plan.h"

namespace tessera {

std::string nodes_text(const ClusterSpec& cluster) {
  std::string text;
  std::int64_t node = 0;
  for (const NodeGroup& group : cluster.groups) {
    const std::int64_t last = node + group.nodes - 1;
    text += (text.empty() ? "nodes " : ", nodes ") + std::to_string(node) + "-" +
            std::to_string(last) + " (ranks " + std::to_string(node * cluster.gpus_per_node) + "-" +
            std::to_string((last + 1) * cluster.gpus_per_node - 1) + ") " + group.device.name;
    node += group.nodes;
  }
  return text;
}

std::set<std::string> types_of(const Plan& plan) {
  std::set<std::string> types;
  for (const RolePlan& role : plan.roles) {
    types.insert(role.gpu_types.begin(), role.gpu_types.end());
  }
  return types;
}

}  // namespace tessera
