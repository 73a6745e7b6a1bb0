#include "planner/advice/changed_keys.h"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "cost_models/documents/problem.h"
#include "planner/advice/inherited_keys.h"
#include "planner/interop/config/config_values.h"
#include "planner/interop/export.h"
#include "planner/interop/verl/verl_keys.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

// A value of an export, and whether Hydra has to add its key, which verl's files do not list.
struct Exported {
  std::string value;
  bool added = false;
};
using Keys = std::map<std::string, Exported>;

// "a.b.c=value", in quotes or not and with Hydra's + before it.
std::optional<Keys::value_type> override_in(std::string_view line) {
  constexpr std::string_view kName = "abcdefghijklmnopqrstuvwxyz_0123456789.";
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  if (line.starts_with('\'')) line.remove_prefix(1);
  const bool added = line.starts_with('+');
  line.remove_prefix(std::min(line.find_first_not_of('+'), line.size()));
  const std::size_t end = std::min(line.find_first_not_of(kName), line.size());
  const std::string_view name = line.substr(0, end), value = line.substr(end);
  const bool path = name.find('.') != std::string_view::npos && !name.starts_with('.') &&
                    !name.ends_with('.') && name.find("..") == std::string_view::npos;
  if (!path || !value.starts_with('=')) return std::nullopt;
  const std::size_t last = value.find_last_not_of("\\ '");
  return Keys::value_type{std::string(name), Exported{std::string(value.substr(1, last)), added}};
}

// Every override of the files that run; they stand one to a line.
Keys keys_of(const Plan& plan) {
  Keys keys;
  for (const ExportTarget& target : every_export_target()) {
    if (target.name != plan.engine) continue;
    Problems problems;
    const auto made = export_plan(plan, target, {}, problems);
    if (!made) return {};
    for (const ExportedFile& file : made->files) {
      if (!file.executable) continue;
      std::istringstream lines(file.text);
      for (std::string text; std::getline(lines, text);) {
        if (auto found = override_in(text)) keys.insert_or_assign(found->first, found->second);
      }
    }
    break;
  }
  return keys;
}

constexpr std::string_view kNotSet = "(not set)";

std::string value_of(const Keys& keys, const std::string& key) {
  const auto found = keys.find(key);
  return found == keys.end() ? std::string(kNotSet) : found->second.value;
}

// As the script states it, strings without quotes.
std::string value_of(const ConfigValues& script, const std::string& key) {
  const Node* const value = script.find(key);
  if (value == nullptr) return std::string(kNotSet);
  return value->is(Node::Kind::string) ? value->text : describe(*value);
}

constexpr std::string_view kSwitch = "use_dynamic_bsz";

// The switch beside a limit of tokens; empty for every other key.
std::string dynamic_switch_of(const std::string& key) {
  constexpr std::string_view kLimit = "max_token_len_per_gpu";
  if (!key.ends_with(kLimit)) return {};
  const std::string block = key.substr(0, key.rfind('.') + 1);
  const bool scoring = key.substr(block.size()).starts_with("log_prob_");
  return block + (scoring ? "log_prob_" : "") + std::string(kSwitch);
}

struct Change {
  std::string from, to;
};
using Changes = std::map<std::string, Change>;

// The script that ran, by the names that verl's keys have now, and what changes of it.
class ScriptChanges {
 public:
  explicit ScriptChanges(const ConfigValues& script)
      : script_(script),
        stated_(in_current_names(script)),
        ran_(with_inherited_defaults(stated_)) {}

  void change(const std::string& key, const std::string& value) {
    const std::string stated = value_of(stated_, key);
    if (stated != value) changes_[key] = {stated, value};
    const std::string dynamic = dynamic_switch_of(key);
    if (!dynamic.empty() && counts_sequences(dynamic)) {
      changes_[dynamic] = {value_of(stated_, dynamic), "true"};
    }
  }

  // Keys that the script leaves to verl follow those that they inherit from: where a change would
  // reach one, it is stated as `planned` has it. Micro-batches that count sequences go on to.
  void keep_inherited(const Keys& planned) {
    ConfigValues then = stated_;
    for (const auto& [key, change] : changes_) {
      then.values.erase(key);
      if (change.to != kNotSet) then.values[key] = {.value = override_value(change.to)};
    }
    then = with_inherited_defaults(std::move(then));
    Changes kept;
    for (const auto& [key, exported] : planned) {
      const std::string before = value_of(ran_, key);
      if (changes_.contains(key) || value_of(then, key) == before) continue;
      const std::string dynamic = dynamic_switch_of(key);
      if (!dynamic.empty() && counts_sequences(dynamic)) continue;  // it limits nothing
      kept[key] = {value_of(stated_, key), key.ends_with(kSwitch) ? before : exported.value};
    }
    changes_.merge(kept);
  }

  // A server that never sleeps holds its share of the device beside training: a plan that counts
  // with its own share there asks for it, whatever the run had while its server slept.
  void state_kept_share(const Keys& planned) {
    constexpr std::string_view kShare = ".gpu_memory_utilization", kFreed = ".free_cache_engine";
    for (const auto& [key, exported] : planned) {
      if (!key.ends_with(kShare)) continue;
      const std::string server = key.substr(0, key.size() - kShare.size());
      if (value_of(planned, server + std::string(kFreed)) == "false") change(key, exported.value);
    }
  }

  // A former name beside the new one is unknown to verl, unread, or copied over it
  // (migrate_legacy_reward_impl).
  void drop_former_names() {
    for (const auto& [key, unused] : script_.values) {
      const std::string now = current_name(key);
      if (now.empty() || script_.syntax != ConfigSyntax::verl || !changes_.contains(now)) continue;
      changes_[key] = {value_of(script_, key), "(remove: its name is " + now + ")"};
    }
  }

  const Changes& changes() const { return changes_; }

 private:
  static ConfigValues in_current_names(const ConfigValues& script) {
    if (script.syntax != ConfigSyntax::verl) return script;
    std::vector<IgnoredKey> gone;
    std::vector<std::string> notes;
    return with_current_names(script, gone, notes);
  }

  bool counts_sequences(const std::string& dynamic) const {
    const Node* const found = ran_.find(dynamic);
    return found == nullptr || !found->is(Node::Kind::boolean) || !found->boolean;
  }

  const ConfigValues& script_;
  ConfigValues stated_, ran_;
  Changes changes_;
};

}  // namespace

std::vector<std::string> changed_keys(const Plan& before, const Plan& after,
                                      const ConfigValues* script) {
  const auto old_keys = keys_of(before);
  const auto new_keys = keys_of(after);
  if (old_keys.empty() || new_keys.empty()) return {};
  Keys all = old_keys;
  all.insert(new_keys.begin(), new_keys.end());
  std::optional<ScriptChanges> of_script;
  if (script != nullptr) of_script.emplace(*script);
  Changes changes;
  for (const auto& [key, unused] : all) {
    const std::string planned = value_of(old_keys, key), value = value_of(new_keys, key);
    if (planned == value) continue;
    if (of_script) {
      of_script->change(key, value);
    } else {
      changes[key] = {planned, value};
    }
  }
  if (of_script) {
    of_script->state_kept_share(new_keys);
    of_script->keep_inherited(new_keys);
    of_script->drop_former_names();
    changes = of_script->changes();
  }
  std::vector<std::string> texts;
  for (const auto& [key, change] : changes) {
    const auto exported = all.find(key);
    const bool added = exported != all.end() && exported->second.added;
    texts.push_back((added ? "+" : "") + key + ": " + change.from + " -> " + change.to);
  }
  return texts;
}

}  // namespace tessera
