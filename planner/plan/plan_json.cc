#include "planner/plan/plan_json.h"

#include <algorithm>
#include <concepts>
#include <utility>

#include "cost_models/documents/strict_json.h"
#include "cost_models/spec/spec_document.h"
#include "planner/plan/plan_fields.h"

namespace tessera {
namespace {

std::string key_name(const std::string& key) { return key; }
std::string key_name(Phase phase) { return std::string(name_of(phase)); }

class PlanWriter {
 public:
  Node node = map_node();

  template <class T, class... Range>
  void field(std::string_view key, T& value, const Range&...) {
    if constexpr (std::is_enum_v<T>) {
      add(node, key, node_of(name_of(value)));
    } else if constexpr (std::same_as<T, std::string>) {
      add(node, key, node_of(std::string_view(value)));
    } else {
      add(node, key, node_of(value));
    }
  }
  /// A member that is left out where it has its type's default.
  template <class T, class... Range>
  void stated(std::string_view key, T& value, const Range&... range) {
    if (value != T{}) field(key, value, range...);
  }
  template <class T>
  void object(std::string_view key, T& value) {
    add(node, key, written(value));
  }
  template <class T>
  void stated_object(std::string_view key, T& value) {
    if (value.used()) object(key, value);
  }
  template <class T>
  void list(std::string_view key, std::vector<T>& values) {
    Node items = list_node();
    for (T& value : values) items.items.push_back(written(value));
    add(node, key, std::move(items));
  }
  void strings(std::string_view key, std::vector<std::string>& values) {
    Node items = list_node();
    for (const std::string& value : values) items.items.push_back(node_of(std::string_view(value)));
    add(node, key, std::move(items));
  }
  void stated_strings(std::string_view key, std::vector<std::string>& values) {
    if (!values.empty()) strings(key, values);
  }
  template <class Key, class T>
  void map(std::string_view key, std::map<Key, T>& values) {
    Node members = map_node();
    for (auto& [name, value] : values) add(members, key_name(name), written(value));
    add(node, key, std::move(members));
  }
  void phases(std::string_view key, std::vector<Phase>& values);
  void ranks(RolePlan& role);
  void stages(std::string_view key, std::vector<LayerRange>& values);
  void calibrations(std::string_view key, std::vector<Calibration>& values);

 private:
  static Node written(Seconds& value) { return node_of(value); }
  static Node written(ModelSpec& value) { return to_node(value); }
  static Node written(ClusterSpec& value) { return to_node(value); }
  static Node written(Workload& value) { return to_node(value); }
  template <class T>
  static Node written(T& value) {
    PlanWriter inner;
    fields(inner, value);
    return std::move(inner.node);
  }
};

void PlanWriter::phases(std::string_view key, std::vector<Phase>& values) {
  Node items = list_node();
  for (const Phase phase : values) items.items.push_back(node_of(name_of(phase)));
  add(node, key, std::move(items));
}

Node rank_list(const std::vector<int>& ranks) {
  Node items = list_node();
  for (const int rank : ranks) items.items.push_back(node_of(rank));
  return items;
}

void PlanWriter::ranks(RolePlan& role) {
  std::vector<int> ascending = role.ranks;
  const bool list = role.rank_order == RankOrder::list;
  if (list) std::sort(ascending.begin(), ascending.end());
  add(node, "ranks", rank_list(ascending));
  add(node, "rank_map", list ? rank_list(role.ranks) : node_of(name_of(role.rank_order)));
}

void PlanWriter::stages(std::string_view key, std::vector<LayerRange>& values) {
  Node items = list_node();
  for (const LayerRange& range : values) {
    Node pair = list_node();
    pair.items = {node_of(range.first), node_of(range.last)};
    items.items.push_back(std::move(pair));
  }
  add(node, key, std::move(items));
}

// As their own files are written.
void PlanWriter::calibrations(std::string_view key, std::vector<Calibration>& values) {
  if (values.empty()) return;
  Node items = list_node();
  for (const Calibration& value : values) {
    Problems none;
    if (auto text = parse_json(to_json(value), "", none)) {
      items.items.push_back(std::move(text->root));
    }
  }
  add(node, key, std::move(items));
}

}  // namespace

Node to_node(const Plan& plan) {
  Plan copy = plan;  // the visitors take members they could change
  PlanWriter writer;
  add(writer.node, "tessera_plan", node_of(kPlanVersion));
  before_dataflow(writer, copy);
  add(writer.node, "dataflow", to_node(plan.workload.dataflow));
  after_dataflow(writer, copy);
  return std::move(writer.node);
}

std::string to_json(const Plan& plan) { return json_text(to_node(plan)); }

void write_plan(const Plan& plan, const std::filesystem::path& file) {
  write_text_file(file, to_json(plan));
}

}  // namespace tessera
