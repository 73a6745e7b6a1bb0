#include "planner/interop/config/command_words.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

bool is_flag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' &&
         std::isdigit(static_cast<unsigned char>(word[1])) == 0;
}

void mark_unknown(ConfigValue& value, const ShellWord& word) {
  if (!word.known) value.unknown = word.unknown;
}

}  // namespace

void read_flags(const ShellCommand& command, std::size_t first, ConfigValues& out) {
  for (std::size_t i = first; i < command.size(); ++i) {
    const std::string& word = command[i].text;
    ConfigValue value;
    value.place = std::to_string(command[i].line);
    if (!is_flag(word)) {
      if (first == 0 || i != first) continue;
      value.value = node_of(std::string_view(word));
      mark_unknown(value, command[i]);
      out.values["model"] = std::move(value);
      continue;
    }
    const bool two_dashes = word.rfind("--", 0) == 0;
    if (first == 0 && !two_dashes) continue;  // the command's own short flags
    std::string flag = word.substr(two_dashes ? 2 : 1);
    if (flag.empty()) continue;
    const auto equals = flag.find('=');
    value.value = node_of(true);
    if (equals != flag.npos) {
      value.value = override_value(std::string_view(flag).substr(equals + 1));
      flag.resize(equals);
    } else if (i + 1 < command.size() && !is_flag(command[i + 1].text)) {
      value.value = override_value(command[++i].text);
      mark_unknown(value, command[i]);
    }
    std::replace(flag.begin(), flag.end(), '_', '-');
    out.values[flag] = std::move(value);
  }
}

void read_override(const ShellWord& word, ConfigValues& out, Problems& problems) {
  const std::string_view text = word.text;
  const auto equals = text.find('=');
  const auto refuse = [&](const char* hint) {
    problems.push_back({out.file, std::to_string(word.line), "'" + word.text.substr(0, 80) + "'",
                        "key=value", hint});
  };
  if (equals == text.npos) {
    if (text.empty() || text[0] != '~') return refuse("an override of Hydra");
    out.values.erase(std::string(text.substr(1)));
    return;
  }
  if (text[0] == '~') {  // deletes the key that has this value
    out.values.erase(std::string(text.substr(1, equals - 1)));
    return;
  }
  ConfigValue value;
  value.place = std::to_string(word.line);
  std::string key(text.substr(0, equals));
  if (!word.known && key.empty()) return;
  while (!key.empty() && key[0] == '+') {
    value.added = true;
    key.erase(0, 1);
  }
  if (key.empty()) return refuse("");
  mark_unknown(value, word);
  value.value = override_value(text.substr(equals + 1));
  value.value.line = word.line;
  if (key == "model_engine" || key == "model_engine@_global_") {
    return out.take_engine(value.value.text, value.place);
  }
  if (key.rfind("hydra.", 0) == 0 || key.find('@') != key.npos) return;
  out.values[key] = std::move(value);
}

}  // namespace tessera
