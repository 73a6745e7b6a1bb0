#include "planner/interop/config_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "cost_models/spec/strict_yaml.h"
#include "planner/interop/shell_words.h"

namespace tessera {
namespace {

constexpr int kMostReferences = 16;

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// "${oc.select:a.b,default}", "${a.b}" and "${.sibling}": the key and what follows the comma.
struct Reference {
  std::string key, otherwise;
  bool has_default = false;
};

std::optional<Reference> reference_of(const Node& node, const std::string& at) {
  if (!node.is(Node::Kind::string) || node.text.size() < 4) return std::nullopt;
  std::string_view text = node.text;
  if (text.substr(0, 2) != "${" || text.back() != '}') return std::nullopt;
  text = text.substr(2, text.size() - 3);
  constexpr std::string_view kSelect = "oc.select:";
  Reference found;
  if (text.substr(0, kSelect.size()) == kSelect) {
    text.remove_prefix(kSelect.size());
    const auto comma = text.find(',');
    if (comma != text.npos) {
      found.has_default = true;
      std::string_view rest = text.substr(comma + 1);
      rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
      found.otherwise = rest;
      text = text.substr(0, comma);
    }
  } else if (text.find(':') != text.npos) {
    return std::nullopt;
  }
  found.key = text;
  if (!found.key.empty() && found.key[0] == '.') {
    const auto dot = at.rfind('.');
    found.key = (dot == at.npos ? "" : at.substr(0, dot)) + found.key;
  }
  return found;
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

class OverrideReader {
 public:
  OverrideReader(ConfigValues& out, Problems& problems) : out_(out), problems_(problems) {}

  void read(const ShellWord& word) {
    std::string_view text = word.text;
    const std::string place = std::to_string(word.line);
    const auto equals = text.find('=');
    if (equals == text.npos) {
      if (!text.empty() && text[0] == '~') return;  // a deletion
      problems_.push_back({out_.file, place, "'" + word.text.substr(0, 80) + "'", "key=value",
                           "an override of Hydra"});
      return;
    }
    ConfigValue value;
    value.place = place;
    std::string key(text.substr(0, equals));
    if (!word.known && word.text.substr(0, equals).empty()) return;
    while (!key.empty() && (key[0] == '+' || key[0] == '~')) {
      value.added = key[0] == '+';
      key.erase(0, 1);
    }
    if (!word.known) value.unknown = word.unknown;
    value.value = override_value(text.substr(equals + 1));
    value.value.line = word.line;
    if (key == "model_engine" || key == "model_engine@_global_") {
      out_.megatron_engine = value.value.text == "megatron";
      return;
    }
    if (key.rfind("hydra.", 0) == 0 || key.find('@') != key.npos) return;
    if (key.empty()) {
      problems_.push_back({out_.file, place, "'" + word.text.substr(0, 80) + "'", "key=value", ""});
      return;
    }
    out_.values[key] = std::move(value);
  }

 private:
  ConfigValues& out_;
  Problems& problems_;
};

bool is_trainer(const std::string& word) {
  return word.find("main_ppo") != word.npos || word.find("verl.trainer") != word.npos ||
         word.find("main_dapo") != word.npos;
}

struct Server {
  ConfigSyntax syntax = ConfigSyntax::vllm;
  std::size_t arguments = 0;  // where they begin in the command
};

// "vllm serve MODEL ...", "python3 -m vllm.entrypoints.openai.api_server ...",
// "python3 -m sglang.launch_server ...".
std::optional<Server> server_in(const ShellCommand& command) {
  for (std::size_t i = 0; i < command.size(); ++i) {
    const std::string& word = command[i].text;
    if (word.rfind("sglang.launch_server", 0) == 0) return Server{ConfigSyntax::sglang, i + 1};
    if (word.rfind("vllm.entrypoints", 0) == 0) return Server{ConfigSyntax::vllm, i + 1};
    const bool vllm = word == "vllm" || ends_with(word, "/vllm");
    if (vllm && i + 1 < command.size() && command[i + 1].text == "serve") {
      return Server{ConfigSyntax::vllm, i + 2};
    }
  }
  return std::nullopt;
}

// --flag value, --flag=value and --flag alone; a leading word without a flag is a served model.
void read_flags(const ShellCommand& command, std::size_t first, ConfigValues& out) {
  const auto is_flag = [](const std::string& word) {
    return word.size() > 1 && word[0] == '-' &&
           std::isdigit(static_cast<unsigned char>(word[1])) == 0;
  };
  for (std::size_t i = first; i < command.size(); ++i) {
    const std::string& word = command[i].text;
    ConfigValue value;
    value.place = std::to_string(command[i].line);
    if (!is_flag(word)) {
      if (first > 0 && i == first) {
        value.value = node_of(std::string_view(word));
        if (!command[i].known) value.unknown = command[i].unknown;
        out.values["model"] = std::move(value);
      }
      continue;
    }
    if (first == 0 && word.rfind("--", 0) != 0) continue;  // the command's own short flags
    std::string flag = word.substr(word.rfind("--", 0) == 0 ? 2 : 1);
    if (flag.empty()) continue;
    const auto equals = flag.find('=');
    value.value = node_of(true);
    if (equals != flag.npos) {
      value.value = override_value(std::string_view(flag).substr(equals + 1));
      flag.resize(equals);
    } else if (i + 1 < command.size() && !is_flag(command[i + 1].text)) {
      value.value = override_value(command[i + 1].text);
      if (!command[i + 1].known) value.unknown = command[i + 1].unknown;
      ++i;
    }
    std::replace(flag.begin(), flag.end(), '_', '-');
    out.values[flag] = std::move(value);
  }
}

// The command that starts verl's trainer or a server, or the arguments of all.
void read_script(std::string_view text, ConfigValues& out, Problems& problems) {
  const std::size_t before = problems.size();
  const auto commands = shell_commands(text, out.file, problems);
  if (problems.size() != before) return;
  for (const ShellCommand& command : commands) {
    const auto start = std::find_if(command.begin(), command.end(),
                                    [](const ShellWord& word) { return is_trainer(word.text); });
    if (start == command.end()) continue;
    OverrideReader reader(out, problems);
    for (auto word = start + 1; word != command.end(); ++word) {
      if (word->text.rfind("--config-name", 0) == 0) {
        std::string name = word->text;
        if (name == "--config-name" && word + 1 != command.end()) name = (++word)->text;
        if (name.find("megatron") != name.npos) out.megatron_engine = true;
      } else if (word->text.rfind("--config-", 0) == 0) {
        if (word->text.find('=') == std::string::npos && word + 1 != command.end()) ++word;
      } else if (word->text.rfind("--", 0) == 0) {
        continue;  // Hydra's own flags
      } else if (!word->text.empty()) {
        reader.read(*word);
      }
    }
    return;
  }
  for (const ShellCommand& command : commands) {
    if (const auto server = server_in(command)) {
      read_flags(command, server->arguments, out);
      out.syntax = server->syntax;
      return;
    }
  }
  for (const ShellCommand& command : commands) read_flags(command, 0, out);
  const auto any = [&](std::initializer_list<const char*> flags) {
    return std::any_of(flags.begin(), flags.end(), [&](const char* flag) { return out.has(flag); });
  };
  out.syntax = ConfigSyntax::megatron;
  if (any({"tensor-model-parallel-size", "micro-batch-size", "num-layers"})) return;
  if (any({"tp-size", "mem-fraction-static", "max-running-requests", "model-path"})) {
    out.syntax = ConfigSyntax::sglang;
  } else if (any({"tensor-parallel-size", "gpu-memory-utilization", "max-num-seqs"})) {
    out.syntax = ConfigSyntax::vllm;
  } else {
    problems.push_back({out.file, "",
                        "no command that starts verl.trainer.main_ppo, vllm or sglang and no "
                        "arguments of Megatron-LM",
                        "one of them", "the overrides or arguments themselves are read as well"});
  }
}

void read_lines(std::string_view text, ConfigValues& out, Problems& problems) {
  const std::size_t before = problems.size();
  OverrideReader reader(out, problems);
  int line = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = text.find('\n', begin);
    if (end == text.npos) end = text.size();
    ++line;
    // Behind a word, so that `model_engine=megatron` is no assignment of the shell's.
    const std::string command = "override " + std::string(text.substr(begin, end - begin));
    for (const ShellCommand& found : shell_commands(command, out.file, problems)) {
      for (std::size_t i = 1; i < found.size(); ++i) {
        ShellWord word = found[i];
        word.line = line;
        reader.read(word);
      }
    }
    begin = end + 1;
  }
  if (problems.size() == before && out.values.empty()) {
    problems.push_back({out.file, "", "nothing", "overrides of verl, key=value", ""});
  }
}

// Lines of overrides are no shell script: `a.b=1` would be an assignment there only without dots.
bool is_override_list(std::string_view text) {
  std::size_t begin = 0;
  bool any = false;
  while (begin < text.size()) {
    std::size_t end = text.find('\n', begin);
    if (end == text.npos) end = text.size();
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    const auto first = line.find_first_not_of(" \t\r");
    if (first == line.npos || line[first] == '#') continue;
    line.remove_prefix(first);
    const auto equals = line.find('=');
    if (equals == line.npos || line.find_first_of(" \t") < equals || line[0] == '-') return false;
    any = true;
  }
  return any;
}

}  // namespace

Node override_value(std::string_view word) {
  while (!word.empty() && (word.front() == ' ')) word.remove_prefix(1);
  while (!word.empty() && (word.back() == ' ' || word.back() == '\r')) word.remove_suffix(1);
  if (word.empty()) return node_of(std::string_view{});
  if (word.size() >= 2 && (word.front() == '\'' || word.front() == '"') &&
      word.back() == word.front()) {
    std::string text;
    for (std::size_t i = 1; i + 1 < word.size(); ++i) {
      // Backslashes escape the quote, and themselves before it or the end.
      if (word[i] == '\\') {
        std::size_t end = word.find_first_not_of('\\', i);
        const bool special =
            end == word.npos || end + 1 >= word.size() || word[end] == word.front();
        end = std::min(end, word.size() - 1);
        const std::size_t count = end - i;
        if (special) {
          text.append(count / 2, '\\');
          if (count % 2 == 1 && end + 1 < word.size()) text += word[end], ++end;
          i = end - 1;
          continue;
        }
      }
      text += word[i];
    }
    return node_of(std::string_view(text));
  }
  std::string small(word);
  for (char& c : small) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (small == "true" || small == "false") return node_of(small == "true");
  if (small == "null") return {};
  std::string digits(word);
  if (word[0] != '_' && word.back() != '_') std::erase(digits, '_');
  const char* end = digits.data() + digits.size();
  std::int64_t integer = 0;
  if (const auto [at, error] = std::from_chars(digits.data(), end, integer);
      error == std::errc{} && at == end) {
    return node_of(integer);
  }
  double number = 0;
  if (const auto [at, error] = std::from_chars(digits.data(), end, number);
      error == std::errc{} && at == end && std::isfinite(number)) {
    return node_of(number);
  }
  return node_of(word);
}

const Node* ConfigValues::find(const std::string& key) const {
  std::string at = key;
  for (int i = 0; i < kMostReferences; ++i) {
    const auto found = values.find(at);
    if (found == values.end() || found->second.value.is(Node::Kind::null)) return nullptr;
    const auto reference = reference_of(found->second.value, at);
    if (!reference) return &found->second.value;
    at = reference->key;
  }
  return nullptr;
}

const ConfigValue* ConfigValues::known(const std::string& key, Problems& problems,
                                       Node& resolved) const {
  std::string at = key;
  std::set<std::string> seen;
  while (true) {
    const auto found = values.find(at);
    if (found == values.end() || found->second.value.is(Node::Kind::null)) return nullptr;
    const ConfigValue& value = found->second;
    if (!value.unknown.empty()) {
      problems.push_back({file, value.place, key + " = " + value.unknown,
                          "a value that stands in the file",
                          "only a run of the script would tell"});
      return nullptr;
    }
    const auto reference = reference_of(value.value, at);
    if (!reference) {
      resolved = value.value;
      return &value;
    }
    if (!seen.insert(at).second) {
      problems.push_back(
          {file, value.place, "a cycle of references through " + at, "a reference that ends", ""});
      return nullptr;
    }
    if (!values.contains(reference->key) && reference->has_default) {
      resolved = override_value(reference->otherwise);
      return resolved.is(Node::Kind::null) ? nullptr : &value;
    }
    at = reference->key;
  }
}

std::int64_t ConfigValues::integer(const std::string& key, std::int64_t otherwise,
                                   Problems& problems, Whole range) const {
  Node node;
  const ConfigValue* const value = known(key, problems, node);
  if (value == nullptr) return otherwise;
  if (node.is(Node::Kind::number) && node.number == std::floor(node.number) &&
      std::abs(node.number) < 1e15) {
    node = node_of(static_cast<std::int64_t>(node.number));
  }
  if (node.is(Node::Kind::integer) && node.integer >= range.least && node.integer <= range.most) {
    return node.integer;
  }
  std::string expected = "a whole number";
  if (range.least != INT64_MIN) expected += " of at least " + std::to_string(range.least);
  problems.push_back({file, value->place, key + " = " + describe(node), expected, ""});
  return otherwise;
}

bool ConfigValues::boolean(const std::string& key, bool otherwise, Problems& problems) const {
  Node node;
  const ConfigValue* const value = known(key, problems, node);
  if (value == nullptr) return otherwise;
  if (node.is(Node::Kind::boolean)) return node.boolean;
  problems.push_back({file, value->place, key + " = " + describe(node), "true or false", ""});
  return otherwise;
}

std::string ConfigValues::text(const std::string& key, std::string otherwise,
                               Problems& problems) const {
  Node node;
  const ConfigValue* const value = known(key, problems, node);
  if (value == nullptr) return otherwise;
  if (node.is(Node::Kind::string)) return node.text;
  problems.push_back({file, value->place, key + " = " + describe(node), "a string", ""});
  return otherwise;
}

std::optional<ConfigValues> read_config_values(std::string_view text, const std::string& file,
                                               Problems& problems) {
  const std::size_t before = problems.size();
  ConfigValues out;
  out.file = file;
  if (!check_text(text, file, {.bytes = std::size_t{1} << 20}, problems)) return std::nullopt;
  const bool yaml_name = ends_with(file, ".yaml") || ends_with(file, ".yml");
  if (yaml_name) {
    const auto document = parse_yaml(text, file, problems);
    if (!document) return std::nullopt;
    if (document->root.is(Node::Kind::list)) {  // .hydra/overrides.yaml
      OverrideReader reader(out, problems);
      for (const Node& item : document->root.items) {
        if (item.is(Node::Kind::string)) {
          reader.read({.text = item.text, .line = item.line});
        } else {
          problems.push_back({file, std::to_string(item.line), describe(item), "key=value", ""});
        }
      }
    } else if (document->root.is(Node::Kind::map)) {
      out.from_yaml = true;
      flatten(document->root, "", out);
      std::erase_if(out.values, [](const auto& entry) {
        return entry.first == "hydra" || entry.first.rfind("hydra.", 0) == 0 ||
               entry.first == "defaults" || ends_with(entry.first, "_target_");
      });
      const Node* const defaults = document->root.find("defaults");
      out.complete = defaults == nullptr;
      if (defaults != nullptr) {
        for (const Node& item : defaults->items) {
          const Node* engine = item.find("override model_engine");
          if (engine == nullptr) engine = item.find("model_engine");
          if (engine != nullptr) out.megatron_engine = engine->text == "megatron";
          if (item.text.find("megatron") != item.text.npos) out.megatron_engine = true;
        }
      }
      const Node* const strategy = out.find("actor_rollout_ref.actor.strategy");
      if (strategy != nullptr && strategy->text == "megatron") out.megatron_engine = true;
      const bool any = std::any_of(out.values.begin(), out.values.end(), [](const auto& entry) {
        return entry.first.rfind("actor_rollout_ref.", 0) == 0;
      });
      if (!any && problems.size() == before) {
        problems.push_back({file, "1", "no key actor_rollout_ref", "a configuration of verl", ""});
      }
    } else {
      problems.push_back({file, "1", describe(document->root), "a configuration of verl",
                          "a map, or a list of overrides"});
    }
  } else if (is_override_list(text)) {
    read_lines(text, out, problems);
  } else {
    read_script(text, out, problems);
  }
  const Node* const strategy = out.find("actor_rollout_ref.actor.strategy");
  if (strategy != nullptr && strategy->text == "megatron") out.megatron_engine = true;
  if (problems.size() != before) return std::nullopt;
  return out;
}

}  // namespace tessera
