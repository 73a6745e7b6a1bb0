#include "planner/explain/infeasible_json.h"

#include <utility>

#include "cost_models/documents/strict_json.h"
#include "planner/explain/infeasible.h"

namespace tessera {

void add_to(Node& map, const Infeasible& infeasible) {
  add(map, "feasible", node_of(false));
  Node shortages = list_node();
  for (const MemoryShortage& shortage : infeasible.shortages) {
    Node each = map_node();
    add(each, "role", node_of(name_of(shortage.role)));
    add(each, "phase", node_of(name_of(shortage.phase)));
    add(each, "rank", node_of(shortage.rank));
    if (!shortage.gpu.empty()) add(each, "gpu", node_of(shortage.gpu));
    add(each, "class", node_of(shortage.tensor_class));
    add(each, "class_bytes", node_of(shortage.class_bytes));
    add(each, "needed_bytes", node_of(shortage.needed));
    add(each, "limit_bytes", node_of(shortage.limit));
    shortages.items.push_back(std::move(each));
  }
  add(map, "shortages", std::move(shortages));
  Node reasons = list_node();
  for (const std::string& reason : infeasible.reasons) reasons.items.push_back(node_of(reason));
  add(map, "reasons", std::move(reasons));
  add(map, "nearest_fix", node_of(infeasible.nearest_fix));
}

std::string to_json(const Infeasible& infeasible) {
  Node root = map_node();
  add_to(root, infeasible);
  return json_text(root);
}

}  // namespace tessera
