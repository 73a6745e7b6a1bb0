#include "cost_models/documents/yaml_overrides.h"

#include <yaml-cpp/yaml.h>

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

void set_key(YAML::Node node, const std::string& word, const std::string& called) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0) refuse(called, "'" + word + "'", "KEY=VALUE");
  const std::string key = word.substr(0, equals), value = word.substr(equals + 1);
  for (std::size_t at = 0;;) {
    const std::size_t dot = key.find('.', at);
    const std::string part = key.substr(at, dot == std::string::npos ? dot : dot - at);
    if (part.empty()) refuse(called, "'" + key + "'", "a key, or keys with one dot between two");
    if (dot == std::string::npos) {
      try {
        node[part] = YAML::Load(value);
      } catch (const YAML::Exception& error) {
        refuse(called, fault_of(value, error), "a value as in the file: 3, text, [a, b], {a: 1}");
      }
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

}  // namespace

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
