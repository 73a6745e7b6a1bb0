#include "planner/advice/changed_keys.h"

#include <map>
#include <regex>
#include <sstream>

#include "cost_models/documents/problem.h"
#include "planner/interop/export.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

// Every "a.b.c=value" of the files that run; overrides stand one to a line.
std::map<std::string, std::string> keys_of(const Plan& plan) {
  static const std::regex kOverride(R"re(^\s*'?\+*([a-z_0-9]+(\.[a-z_0-9]+)+)=(.*)$)re");
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
        std::smatch found;
        if (!std::regex_match(text, found, kOverride)) continue;
        std::string value = found[3];
        while (!value.empty() &&
               (value.back() == '\\' || value.back() == ' ' || value.back() == '\'')) {
          value.pop_back();
        }
        keys[found[1]] = value;
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
