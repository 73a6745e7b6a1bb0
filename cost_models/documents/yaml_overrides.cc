#include "cost_models/documents/yaml_overrides.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_yaml.h"

namespace tessera {
namespace {

[[noreturn]] void refuse(const std::string& word, std::string found, std::string expected) {
  throw Error(ExitCode::usage,
              {Problem{.file = word, .found = std::move(found), .expected = std::move(expected)}});
}

/// What of the text is no YAML.
std::string fault_of(const std::string& text, const YAML::Exception& error) {
  if (error.msg == "end of sequence flow not found") return "'" + text + "', a list without its ]";
  if (error.msg == "end of map flow not found") return "'" + text + "', a map without its }";
  return "'" + text + "' (" + error.msg + ")";
}

YAML::Node value_of(const std::string& text, const std::string& called) {
  YAML::Node value;
  try {
    value = YAML::Load(text);
  } catch (const YAML::Exception& error) {
    refuse(called, fault_of(text, error), "a value as in the file: 3, text, [a, b], {a: 1}");
  }
  Problems problems;
  if (!value.IsNull()) parse_yaml(text, called, problems);
  for (Problem& problem : problems) problem.place.clear();
  if (!problems.empty()) throw Error(ExitCode::usage, std::move(problems));
  return value;
}

void set_key(YAML::Node node, const std::string& word, const std::string& called) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0) refuse(called, "'" + word + "'", "KEY=VALUE");
  const std::string key = word.substr(0, equals), value = word.substr(equals + 1);
  for (std::size_t at = 0;;) {
    const std::size_t dot = key.find('.', at);
    const std::string part = key.substr(at, dot == std::string::npos ? dot : dot - at);
    if (part.empty()) refuse(called, "'" + key + "'", "a key, or keys with one dot between two");
    if (dot == std::string::npos) {
      node[part] = value_of(value, called);
      return;
    }
    YAML::Node child = node[part];
    if (!child.IsMap()) child = node[part] = YAML::Node(YAML::NodeType::Map);
    node.reset(child);
    at = dot + 1;
  }
}

/// As YAML::Dump, but what was quoted stays so: '1e-3' is a text before and after, and no number.
void write(const YAML::Node& node, YAML::Emitter& out) {
  const bool flow = node.Style() == YAML::EmitterStyle::Flow;
  switch (node.Type()) {
    case YAML::NodeType::Map:
      if (flow) out << YAML::Flow;
      out << YAML::BeginMap;
      for (const auto& member : node) {
        out << YAML::Key;
        write(member.first, out);
        out << YAML::Value;
        write(member.second, out);
      }
      out << YAML::EndMap;
      return;
    case YAML::NodeType::Sequence:
      if (flow) out << YAML::Flow;
      out << YAML::BeginSeq;
      for (const auto& item : node) write(item, out);
      out << YAML::EndSeq;
      return;
    case YAML::NodeType::Scalar:
      if (node.Tag() == "!") out << YAML::DoubleQuoted;
      out << node.Scalar();
      return;
    case YAML::NodeType::Null:
    case YAML::NodeType::Undefined:
      out << YAML::Null;
  }
}

/// The key of "12:3 (a.b)", of "a.b" or, none, of "12:3".
std::string key_at(const std::string& place) {
  if (place.empty() || !std::isdigit(static_cast<unsigned char>(place.front()))) return place;
  const std::size_t open = place.find(" (");
  if (open == std::string::npos || place.back() != ')') return {};
  return place.substr(open + 2, place.size() - open - 3);
}

bool is_below(std::string_view key, std::string_view map) {
  return key.size() > map.size() && key.starts_with(map) && key[map.size()] == '.';
}

std::string_view key_of(std::string_view word) { return word.substr(0, word.find('=')); }

/// The word that made what stands at `key` what it is; the last one counts.
const std::string* word_of(const Document& original, const std::vector<std::string>& words,
                           const std::string& key) {
  const auto find = [&](const auto& wanted) {
    const auto found = std::find_if(words.rbegin(), words.rend(), wanted);
    return found == words.rend() ? nullptr : &*found;
  };
  const std::string* const stated = find(
      [&](const std::string& word) { return key_of(word) == key || is_below(key, key_of(word)); });
  if (stated != nullptr || place_of_key(original, key) != key) return stated;
  return find([&](const std::string& word) { return is_below(key_of(word), key); });
}

/// The line of the key, or of the map that should have it.
std::string line_of(const Document& original, const std::string& key) {
  for (std::string at = key;; at.resize(std::min(at.rfind('.'), at.size()))) {
    const std::string place = place_of_key(original, at);
    if (place != at) return place.substr(0, place.find(' ')) + " (" + key + ")";
    if (at.find('.') == std::string::npos) break;
  }
  const Node& root = original.root;
  return std::to_string(root.line) + ":" + std::to_string(root.column) + " (" + key + ")";
}

}  // namespace

void place_overridden(const Document& original, const std::vector<std::string>& words,
                      Problems& problems, const std::string& option) {
  for (Problem& problem : problems) {
    const std::string key = key_at(problem.place);
    if (problem.file != original.file || key.empty()) continue;
    if (const std::string* const word = word_of(original, words, key)) {
      problem.file = option + " " + *word;
      problem.place = key == key_of(*word) ? "" : key;
    } else if (key != problem.place) {
      problem.place = line_of(original, key);
    } else {
      problem.place = place_of_key(original, key);
    }
  }
}

std::string with_overrides(std::string_view text, const std::vector<std::string>& words,
                           const std::string& file, const std::string& option) {
  Problems problems;
  const auto document = parse_yaml(text, file, problems);
  if (!document) throw Error(ExitCode::bad_input, std::move(problems));
  if (!document->root.is(Node::Kind::map)) {
    throw Error(
        ExitCode::bad_input,
        {Problem{.file = file, .found = describe(document->root), .expected = "a map of keys"}});
  }
  YAML::Node root = YAML::Load(std::string(text));
  for (const std::string& word : words) set_key(root, word, option + " " + word);
  YAML::Emitter out;
  write(root, out);
  return std::string(out.c_str()) + "\n";
}

}  // namespace tessera
