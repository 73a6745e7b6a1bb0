// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/document/file_kind.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <system_error>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "cost_models/documents/strict_yaml.h"
#include "gui/document/project.h"
#include "gui/topology/node_topology.h"
#include "simulator/timeline/metrics.h"

namespace tessera::gui {
namespace {

namespace fs = std::filesystem;

struct KnownKey {
  std::string_view key;
  FileKind kind;
};
// A key that every file of the kind has, and none of another.
constexpr std::array kKeys{KnownKey{"tessera_project", FileKind::project},
                           KnownKey{"tessera_plan", FileKind::plan},
                           KnownKey{"model_type", FileKind::model},
                           KnownKey{"prompts_per_step", FileKind::workload},
                           KnownKey{"gpus_per_node", FileKind::cluster},
                           KnownKey{"actor_rollout_ref", FileKind::script}};

bool ran(const fs::path& folder) {
  std::error_code unseen;
  return fs::exists(folder / "metrics.jsonl", unseen) || fs::exists(folder / "ranks", unseen);
}

std::optional<FileKind> kind_of_folder(const fs::path& folder, Problems& problems) {
  const auto has = [&](const char* name) {
    std::error_code unseen;
    return fs::exists(folder / name, unseen);
  };
  if (has("config.json")) return FileKind::model;
  if (ran(folder) || has("plan.json")) return FileKind::run;
  problems.push_back({folder.string(), "", "a folder without any of these",
                      "a model's config.json, or a run's metrics.jsonl, ranks or plan.json", ""});
  return std::nullopt;
}

// By its beginning: traces are far larger than what is read whole here. A list of events, or an
// object that names them.
bool is_trace(const fs::path& path) {
  constexpr std::streamsize kBeginning = 64 << 10;
  std::error_code unseen;
  if (!fs::is_regular_file(path, unseen)) return false;
  std::ifstream in(path, std::ios::binary);
  std::string text(kBeginning, '\0');
  in.read(text.data(), kBeginning);
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return false;
  return text[begin] == '[' || text.find("\"traceEvents\"") != std::string::npos;
}

}  // namespace

std::optional<FileKind> kind_of(const fs::path& path, Problems& problems) {
  std::error_code unseen;
  if (fs::is_directory(path, unseen)) return kind_of_folder(path, problems);
  const std::string file = path.string();
  const bool json = path.extension() == ".json";
  if (path.extension() == ".sh") return FileKind::script;
  const bool yaml = path.extension() == ".yaml" || path.extension() == ".yml";
  if (!json && !yaml && has_step(path)) return FileKind::run;
  if (path.extension() == ".txt") {
    return read_topology(path, problems) ? std::optional(FileKind::topology) : std::nullopt;
  }
  if (!json && !yaml) {
    problems.push_back({file, "", "a name that ends in '" + path.extension().string() + "'",
                        ".json, .yaml, .yml or .txt, a log with steps of a run, or a folder", ""});
    return std::nullopt;
  }
  if (json && is_trace(path)) return FileKind::trace;
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
                      json ? "a plan, a project, a trace or a model's config.json"
                           : "a cluster (gpus_per_node) or a workload (prompts_per_step)",
                      ""});
  return std::nullopt;
}

fs::path run_of(const fs::path& folder) {
  std::error_code unseen;
  if (!fs::exists(folder / "plan.json", unseen) || ran(folder)) return folder;
  std::optional<fs::path> newest;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, unseen)) {
    if (!ran(entry.path())) continue;
    if (!newest || entry.last_write_time(unseen) > fs::last_write_time(*newest, unseen)) {
      newest = entry.path();
    }
  }
  return newest.value_or(folder);
}

}  // namespace tessera::gui
