#include "planner/interop/read_config.h"

#include <algorithm>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_yaml.h"
#include "planner/interop/config/command_words.h"
#include "planner/interop/launch_command.h"
#include "planner/interop/shell/shell_words.h"

namespace tessera {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// The line that begins at `at`, which moves behind it.
std::string_view next_line(std::string_view text, std::size_t& at) {
  const std::size_t end = std::min(text.find('\n', at), text.size());
  const std::string_view line = text.substr(at, end - at);
  at = end + 1;
  return line;
}

void flatten(const Node& node, const std::string& path, ConfigValues& out) {
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const std::string key = path.empty() ? node.keys[i] : path + "." + node.keys[i];
    const Node& item = node.items[i];
    if (item.is(Node::Kind::map) && !item.keys.empty()) {
      flatten(item, key, out);
    } else {
      out.values[key] = {item, std::to_string(item.line) + ":" + std::to_string(item.column), "",
                         false};
    }
  }
}

// A job's .hydra/overrides.yaml.
void read_override_items(const Node& list, ConfigValues& out, Problems& problems) {
  for (const Node& item : list.items) {
    if (item.is(Node::Kind::string)) {
      read_override({.text = item.text, .line = item.line}, out, problems);
    } else {
      problems.push_back({out.file, std::to_string(item.line), describe(item), "key=value", ""});
    }
  }
}

// The engine that "defaults" of a file choose which Hydra composes: by name, or by one of verl's
// configurations (ppo_megatron_trainer).
void take_engine_of(const Node& defaults, ConfigValues& out) {
  for (const Node& item : defaults.items) {
    const std::string place = std::to_string(item.line) + ":" + std::to_string(item.column);
    const Node* engine = item.find("override model_engine");
    if (engine == nullptr) engine = item.find("model_engine");
    if (engine != nullptr) out.take_engine(engine->text, place);
    for (const auto& [value, name] : kVerlEngines.pairs) {
      if (item.text.find(name) != item.text.npos) out.take_engine(std::string(name), place);
    }
  }
}

void read_tree(const Node& root, ConfigValues& out, Problems& problems) {
  const std::size_t before = problems.size();
  out.from_yaml = true;
  flatten(root, "", out);
  std::erase_if(out.values, [](const auto& entry) {
    return entry.first == "hydra" || entry.first.rfind("hydra.", 0) == 0 ||
           entry.first == "defaults" || ends_with(entry.first, "_target_");
  });
  const Node* const defaults = root.find("defaults");
  out.complete = defaults == nullptr;
  if (defaults != nullptr) take_engine_of(*defaults, out);
  const bool any = std::any_of(out.values.begin(), out.values.end(), [](const auto& entry) {
    return entry.first.rfind("actor_rollout_ref.", 0) == 0;
  });
  if (!any && problems.size() == before) {
    problems.push_back({out.file, "1", "no key actor_rollout_ref", "a configuration of verl", ""});
  }
}

void read_yaml(std::string_view text, ConfigValues& out, Problems& problems) {
  const std::size_t before = problems.size();
  const auto document = parse_yaml_as_far(text, out.file, problems);
  if (!document) return;
  out.refused = problems.size() - before;
  if (document->root.is(Node::Kind::list))
    return read_override_items(document->root, out, problems);
  if (document->root.is(Node::Kind::map)) return read_tree(document->root, out, problems);
  problems.push_back({out.file, "1", describe(document->root), "a configuration of verl",
                      "a map, or a list of overrides"});
}

// A line of an override list, "a.b=1" or "model_engine=megatron": an assignment of the shell's has
// no dot in its name.
bool is_override(std::string_view line) {
  const auto equals = line.find('=');
  if (equals == line.npos || line.find_first_of(" \t") < equals || line[0] == '-') return false;
  const std::string_view key = line.substr(0, equals);
  return key.find('.') != key.npos || key == "model_engine";
}

// Lines of overrides; what is among them and none must be a word alone, as no script has it: it is
// refused by its line.
bool is_override_list(std::string_view text) {
  bool any = false;
  for (std::size_t at = 0; at < text.size();) {
    std::string_view line = next_line(text, at);
    const auto first = line.find_first_not_of(" \t\r");
    if (first == line.npos || line[first] == '#') continue;
    line = line.substr(first, line.find_last_not_of(" \t\r") + 1 - first);
    const bool one = is_override(line);
    if (!one && line.find_first_of(" \t\\()$\"'`;{}<>|&") != line.npos) return false;
    any = any || one;
  }
  return any;
}

void read_override_lines(std::string_view text, ConfigValues& out, Problems& problems) {
  const std::size_t before = problems.size();
  int line = 0;
  for (std::size_t at = 0; at < text.size();) {
    // Behind a word, so that `model_engine=megatron` is no assignment of the shell's.
    const std::string command = "override " + std::string(next_line(text, at));
    ++line;
    for (const ShellCommand& found : shell_commands(command, out.file, problems)) {
      for (std::size_t i = 1; i < found.size(); ++i) {
        ShellWord word = found[i];
        word.line = line;
        read_override(word, out, problems);
      }
    }
  }
  if (problems.size() == before && out.values.empty()) {
    problems.push_back({out.file, "", "nothing", "overrides of verl, key=value", ""});
  }
}

}  // namespace

std::optional<ConfigValues> read_config_values(std::string_view text, const std::string& file,
                                               Problems& problems) {
  const std::size_t before = problems.size();
  ConfigValues out;
  out.file = file;
  if (!check_text(text, file, {.bytes = kMostBytes}, problems)) return std::nullopt;
  if (ends_with(file, ".yaml") || ends_with(file, ".yml")) {
    read_yaml(text, out, problems);
  } else if (is_override_list(text)) {
    read_override_lines(text, out, problems);
  } else {
    const auto commands = shell_commands(text, file, problems, &out.assumed);
    if (problems.size() == before) read_commands(commands, out, problems);
  }
  if (problems.size() != before + out.refused) return std::nullopt;
  const std::string key = "actor_rollout_ref.actor.strategy";
  const Node* const strategy = out.find(key);
  if (strategy != nullptr && strategy->is(Node::Kind::string) &&
      strategy->text.substr(0, 4) != "fsdp") {
    out.take_engine(strategy->text, out.values.at(key).place);
  }
  return out;
}

}  // namespace tessera
