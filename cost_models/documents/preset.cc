#include "cost_models/documents/preset.h"

#include <cstdlib>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace fs = std::filesystem;

std::vector<fs::path> config_roots() {
  std::vector<fs::path> candidates;
  if (const char* named = std::getenv("TESSERA_CONFIGS_DIR"); named != nullptr && *named != '\0') {
    candidates.emplace_back(named);
  }
  candidates.emplace_back(TESSERA_SOURCE_CONFIGS);
  std::error_code error;
  const fs::path executable = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    candidates.push_back(executable.parent_path().parent_path() / "share/tessera/configs");
  }
  std::erase_if(candidates, [&](const fs::path& path) { return !fs::is_directory(path, error); });
  return candidates;
}

std::vector<std::string> preset_names(std::string_view kind, std::string_view extension) {
  std::set<std::string> names;
  for (const fs::path& root : config_roots()) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(root / kind, error)) {
      const fs::path& path = entry.path();
      if (extension.empty() ? entry.is_directory(error) : path.extension() == extension) {
        names.insert(extension.empty() ? path.filename().string() : path.stem().string());
      }
    }
  }
  return {names.begin(), names.end()};
}

std::optional<fs::path> find_config(const fs::path& where, std::string_view kind,
                                    std::string_view extension, Problems& problems) {
  std::error_code error;
  const bool bare = !where.empty() && !where.has_parent_path();
  // A folder of the same name in the working directory is not a preset's YAML file.
  if (!where.empty() && fs::exists(where, error) &&
      !(bare && !extension.empty() && fs::is_directory(where, error))) {
    return where;
  }
  if (bare) {
    for (const fs::path& root : config_roots()) {
      fs::path candidate = root / kind / (where.string() + std::string(extension));
      if (fs::exists(candidate, error)) return candidate;
    }
  }
  const std::vector<std::string> names = preset_names(kind, extension);
  std::string hint = did_you_mean(where.string(), names);
  if (hint.empty() && bare && !names.empty()) {
    for (const std::string& name : names) hint += (hint.empty() ? "presets: " : ", ") + name;
  }
  problems.push_back({.file = where.string(),
                      .found = "no such file or preset",
                      .expected = "a path, or the name of a preset of configs/" + std::string(kind),
                      .hint = std::move(hint)});
  return std::nullopt;
}

}  // namespace tessera
