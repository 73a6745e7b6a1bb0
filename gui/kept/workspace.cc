// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/kept/workspace.h"

#include <system_error>
#include <utility>

#include "cost_models/documents/object_reader.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "gui/document/question_json.h"

namespace tessera::gui {
namespace {

constexpr qsizetype kMostRecent = 10;
constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr std::int64_t kVersion = 1;

Node list_of(const QStringList& texts) {
  Node list = list_node();
  for (const QString& text : texts) list.items.push_back(node_of(text.toStdString()));
  return list;
}

QStringList texts(const std::vector<std::string>& words) {
  QStringList list;
  for (const std::string& word : words) list << QString::fromStdString(word);
  return list;
}

QStringList read_list(ObjectReader& reader, const std::string& key) {
  std::vector<std::string> list;
  reader.list(key, list, false);
  return texts(list);
}

}  // namespace

void remember(QStringList& recent, const QString& path) {
  recent.removeAll(path);
  recent.prepend(path);
  if (recent.size() > kMostRecent) recent.resize(kMostRecent);
}

Workspace read_workspace(const std::filesystem::path& file, Problems& problems) {
  Workspace workspace;
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return workspace;
  const auto text = read_text_file(file, kMostBytes, problems);
  if (!text) return workspace;
  const auto document = parse_json(*text, file.string(), problems);
  if (!document) return workspace;
  const std::size_t before = problems.size();
  ObjectReader reader(*document, problems);
  std::int64_t version = kVersion;
  reader.required("tessera_window", version, Whole{.least = kVersion, .most = kVersion});
  std::string plan, project;
  read_question(reader, workspace.question);
  reader.optional("plan", plan);
  reader.optional("project", project);
  reader.optional("dark", workspace.dark);
  std::string language, geometry;
  reader.optional("language", language);
  reader.optional("geometry", geometry);
  workspace.layout.geometry = QString::fromStdString(geometry);
  workspace.layout.splits = read_list(reader, "splits");
  workspace.layout.tabs = read_list(reader, "tabs");
  workspace.language = QString::fromStdString(language);
  if (reader.has("metrics")) workspace.metrics = read_list(reader, "metrics");
  reader.optional("smoothing", workspace.smoothing, Whole{.least = 0, .most = 99});
  workspace.recent_plans = read_list(reader, "recent_plans");
  workspace.recent_runs = read_list(reader, "recent_runs");
  workspace.recent_projects = read_list(reader, "recent_projects");
  workspace.plan = QString::fromStdString(plan);
  workspace.project = QString::fromStdString(project);
  return problems.size() == before ? workspace : Workspace{};
}

void write_workspace(const Workspace& workspace, const std::filesystem::path& file) {
  Node root = map_node();
  add(root, "tessera_window", node_of(kVersion));
  add_question(root, workspace.question);
  add(root, "plan", node_of(workspace.plan.toStdString()));
  add(root, "project", node_of(workspace.project.toStdString()));
  add(root, "recent_plans", list_of(workspace.recent_plans));
  add(root, "recent_runs", list_of(workspace.recent_runs));
  add(root, "recent_projects", list_of(workspace.recent_projects));
  add(root, "dark", node_of(workspace.dark));
  add(root, "language", node_of(workspace.language.toStdString()));
  if (workspace.metrics) add(root, "metrics", list_of(*workspace.metrics));
  add(root, "smoothing", node_of(std::int64_t{workspace.smoothing}));
  add(root, "geometry", node_of(workspace.layout.geometry.toStdString()));
  add(root, "splits", list_of(workspace.layout.splits));
  add(root, "tabs", list_of(workspace.layout.tabs));
  std::error_code ignored;  // the writing says it
  std::filesystem::create_directories(file.parent_path(), ignored);
  write_text_file(file, json_text(root));
}

}  // namespace tessera::gui
