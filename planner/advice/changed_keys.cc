#include "planner/advice/changed_keys.h"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "cost_models/documents/problem.h"
#include "planner/interop/config/config_values.h"
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

constexpr std::string_view kNotSet = "(not set)";

std::string value_of(const std::map<std::string, std::string>& keys, const std::string& key) {
  const auto found = keys.find(key);
  return found == keys.end() ? std::string(kNotSet) : found->second;
}

// As the script states it, strings without quotes.
std::string value_of(const ConfigValues& script, const std::string& key) {
  const Node* const value = script.find(key);
  if (value == nullptr) return std::string(kNotSet);
  return value->is(Node::Kind::string) ? value->text : describe(*value);
}

// The switch beside a limit of tokens; empty for every other key.
std::string dynamic_switch_of(const std::string& key) {
  constexpr std::string_view kLimit = "max_token_len_per_gpu", kSwitch = "use_dynamic_bsz";
  if (!key.ends_with(kLimit)) return {};
  const std::string block = key.substr(0, key.rfind('.') + 1);
  const bool scoring = key.substr(block.size()).starts_with("log_prob_");
  return block + (scoring ? "log_prob_" : "") + std::string(kSwitch);
}

// Whether the script's micro-batches count sequences there: switches that it leaves out are the
// actor's, which is off by default (verl 0.9.1 trainer/config).
bool counts_sequences(const ConfigValues& script, const std::string& dynamic) {
  const std::string actor = "actor_rollout_ref.actor.use_dynamic_bsz";
  const Node* found = script.find(dynamic);
  if (found == nullptr) found = script.find(actor);
  return found == nullptr || !found->is(Node::Kind::boolean) || !found->boolean;
}

std::string change_of(const std::string& key, const std::string& before, const std::string& after) {
  return key + ": " + before + " -> " + after;
}

}  // namespace

std::vector<std::string> changed_keys(const Plan& before, const Plan& after,
                                      const ConfigValues* script) {
  const auto old_keys = keys_of(before);
  const auto new_keys = keys_of(after);
  if (old_keys.empty() || new_keys.empty()) return {};
  std::map<std::string, std::string> all = old_keys, changed;
  all.insert(new_keys.begin(), new_keys.end());
  for (const auto& [key, unused] : all) {
    const std::string planned = value_of(old_keys, key), value = value_of(new_keys, key);
    if (planned == value) continue;
    const std::string stated = script != nullptr ? value_of(*script, key) : planned;
    if (stated != value) changed[key] = change_of(key, stated, value);
    const std::string dynamic = dynamic_switch_of(key);
    if (script != nullptr && !dynamic.empty() && counts_sequences(*script, dynamic)) {
      changed[dynamic] = change_of(dynamic, value_of(*script, dynamic), "true");
    }
  }
  std::vector<std::string> texts;
  for (auto& [key, text] : changed) texts.push_back(std::move(text));
  return texts;
}

}  // namespace tessera
