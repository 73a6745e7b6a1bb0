// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/document/file_kind.h"

#include <algorithm>
#include <array>
#include <system_error>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "cost_models/documents/strict_yaml.h"
#include "gui/document/project.h"
#include "gui/topology/node_topology.h"

namespace tessera::gui {
namespace {

namespace fs = std::filesystem;

struct KnownKey {
  std::string_view key;
  FileKind kind;
};
// A key that every file of the kind has, and none of another.
constexpr std::array kKeys{
    KnownKey{"tessera_project", FileKind::project}, KnownKey{"tessera_plan", FileKind::plan},
    KnownKey{"model_type", FileKind::model}, KnownKey{"prompts_per_step", FileKind::workload},
    KnownKey{"gpus_per_node", FileKind::cluster}};

std::optional<FileKind> kind_of_folder(const fs::path& folder, Problems& problems) {
  const auto has = [&](const char* name) {
    std::error_code unseen;
    return fs::exists(folder / name, unseen);
  };
  if (has("config.json")) return FileKind::model;
  if (has("metrics.jsonl") || has("ranks") || has("plan.json")) return FileKind::run;
  problems.push_back({folder.string(), "", "a folder without any of these",
                      "a model's config.json, or a run's metrics.jsonl, ranks or plan.json", ""});
  return std::nullopt;
}

}  // namespace

std::optional<FileKind> kind_of(const fs::path& path, Problems& problems) {
  std::error_code unseen;
  if (fs::is_directory(path, unseen)) return kind_of_folder(path, problems);
  const std::string file = path.string();
  const bool json = path.extension() == ".json";
  if (path.extension() == ".txt") {
    return read_topology(path, problems) ? std::optional(FileKind::topology) : std::nullopt;
  }
  if (!json && path.extension() != ".yaml" && path.extension() != ".yml") {
    problems.push_back({file, "", "a name that ends in '" + path.extension().string() + "'",
                        ".json, .yaml, .yml or .txt, or a folder", ""});
    return std::nullopt;
  }
  const auto text = read_text_file(path, Project::kMostBytes, problems);
  if (!text) return std::nullopt;
  const auto document = json ? parse_json(*text, file, problems, {.bytes = Project::kMostBytes})
                             : parse_yaml(*text, file, problems);
  if (!document) return std::nullopt;
  const Node& root = document->root;
  for (const auto& [key, kind] : kKeys) {
    if (root.is(Node::Kind::map) && root.find(key) != nullptr) return kind;
  }
  problems.push_back({file, "1:1", describe(root),
                      json ? "a plan, a project or a model's config.json"
                           : "a cluster (gpus_per_node) or a workload (prompts_per_step)",
                      ""});
  return std::nullopt;
}

}  // namespace tessera::gui
