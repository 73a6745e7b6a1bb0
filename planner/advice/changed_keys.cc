#include "planner/advice/changed_keys.h"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "cost_models/documents/problem.h"
#include "planner/interop/export.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

// "a.b.c=value", in quotes or not and with Hydra's + before it, as its key and value.
std::optional<std::pair<std::string, std::string>> override_in(std::string_view line) {
  constexpr std::string_view kName = "abcdefghijklmnopqrstuvwxyz_0123456789.";
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  if (line.starts_with('\'')) line.remove_prefix(1);
  line.remove_prefix(std::min(line.find_first_not_of('+'), line.size()));
  const std::size_t end = std::min(line.find_first_not_of(kName), line.size());
  const std::string_view name = line.substr(0, end), value = line.substr(end);
  const bool path = name.find('.') != std::string_view::npos && !name.starts_with('.') &&
                    !name.ends_with('.') && name.find("..") == std::string_view::npos;
  if (!path || !value.starts_with('=')) return std::nullopt;
  const std::size_t last = value.find_last_not_of("\\ '");
  return std::pair{std::string(name), std::string(value.substr(1, last))};
}

// Every override of the files that run; they stand one to a line.
std::map<std::string, std::string> keys_of(const Plan& plan) {
  std::map<std::string, std::string> keys;
  for (const ExportTarget& target : every_export_target()) {
    if (target.name != plan.engine) continue;
    Problems problems;
    const auto made = export_plan(plan, target, {}, problems);
    if (!made) return {};
    for (const ExportedFile& file : made->files) {
      if (!file.executable) continue;
      std::istringstream lines(file.text);
      for (std::string text; std::getline(lines, text);) {
        if (auto found = override_in(text)) keys[found->first] = std::move(found->second);
      }
    }
    break;
  }
  return keys;
}

}  // namespace

std::vector<std::string> changed_keys(const Plan& before, const Plan& after) {
  const auto old_keys = keys_of(before);
  const auto new_keys = keys_of(after);
  std::vector<std::string> changed;
  if (old_keys.empty() || new_keys.empty()) return changed;
  std::map<std::string, std::string> all = old_keys;
  all.insert(new_keys.begin(), new_keys.end());
  const auto of = [](const std::map<std::string, std::string>& keys, const std::string& key) {
    const auto found = keys.find(key);
    return found == keys.end() ? std::string("(not set)") : found->second;
  };
  for (const auto& [key, unused] : all) {
    const std::string old_value = of(old_keys, key), new_value = of(new_keys, key);
    if (old_value != new_value) changed.push_back(key + ": " + old_value + " -> " + new_value);
  }
  return changed;
}

}  // namespace tessera
