// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/watch/run_settings.h"

#include <algorithm>
#include <set>
#include <string>

#include "cost_models/documents/document.h"
#include "cost_models/documents/strict_yaml.h"
#include "gui/document/text.h"
#include "planner/engines/read_plan.h"
#include "planner/plan/plan.h"
#include "planner/request/describe.h"

namespace tessera::gui {
namespace {

QString valueText(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return "null";
    case Node::Kind::boolean:
      return node.boolean ? "true" : "false";
    case Node::Kind::integer:
      return QString::number(node.integer);
    case Node::Kind::number:
      return QString::number(node.number, 'g', 12);
    case Node::Kind::string:
      return toText(node.text);
    case Node::Kind::list:
    case Node::Kind::map:
      break;
  }
  QStringList values;
  for (const Node& item : node.items) values << valueText(item);
  return "[" + values.join(", ") + "]";
}

void add(const Node& node, const QString& name, RunSettings& settings) {
  if (!node.is(Node::Kind::map)) {
    settings[name] = valueText(node);
    return;
  }
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    add(node.items[i], (name.isEmpty() ? "" : name + ".") + toText(node.keys[i]), settings);
  }
}

void add(const Plan& plan, RunSettings& settings) {
  const auto state = [&](const std::string& name, const std::string& value) {
    settings[toText("plan: " + name)] = toText(value);
  };
  state("engine", plan.engine);
  state("cluster", plan.cluster.name);
  state("placement", describe_placement(plan));
  for (const auto& [role, model] : plan.models) state("model." + role, model.path);
  for (const RolePlan& role : plan.roles) {
    state(std::string(name_of(role.role)), describe_layout(plan, role));
  }
}

}  // namespace

RunSettings settings_of_run(const std::filesystem::path& run) {
  constexpr std::size_t kMostBytes = std::size_t{4} << 20;
  RunSettings settings;
  Problems unheard;  // who follows the run says what is wrong with its files
  const std::filesystem::path file = run / "run.yaml";
  if (const auto text = read_text_file(file, kMostBytes, unheard)) {
    if (const auto document = parse_yaml(*text, file.string(), unheard)) {
      add(document->root, {}, settings);
    }
  }
  if (const auto plan = read_plan(run / "plan.json", unheard)) add(*plan, settings);
  return settings;
}

std::vector<SettingApart> settings_apart(const std::vector<RunSettings>& runs) {
  std::set<QString> names;
  for (const RunSettings& run : runs) {
    for (const auto& [name, value] : run) names.insert(name);
  }
  std::vector<SettingApart> apart;
  for (const QString& name : names) {
    SettingApart setting{name, {}};
    for (const RunSettings& run : runs) {
      const auto found = run.find(name);
      setting.values << (found == run.end() ? QString() : found->second);
    }
    const bool same =
        std::ranges::count(setting.values, setting.values.front()) == setting.values.size();
    if (!same) apart.push_back(std::move(setting));
  }
  return apart;
}

}  // namespace tessera::gui
