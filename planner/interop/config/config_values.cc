#include "planner/interop/config/config_values.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

constexpr int kMostReferences = 16;

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

}  // namespace

void ConfigValues::take_engine(const std::string& name, const std::string& place) {
  static constexpr std::string_view kFsdp[] = {"dp", "fsdp", "fsdp2", ""};
  const bool fsdp = std::find(std::begin(kFsdp), std::end(kFsdp), name) != std::end(kFsdp);
  const auto known = fsdp ? VerlEngine::fsdp : kVerlEngines.find(name);
  engine = known.value_or(VerlEngine::fsdp);
  other_engine = known ? "" : name;
  engine_place = place;
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
    if (value.value.refused) return nullptr;
    if (!value.unknown.empty()) {
      problems.push_back(
          {file, value.place, key + " = " + value.unknown, "a value that stands in the file",
           "only a run of the script would tell; --set " + key + "=VALUE states it"});
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

double ConfigValues::number(const std::string& key, double otherwise, Problems& problems) const {
  Node node;
  const ConfigValue* const value = known(key, problems, node);
  if (value == nullptr) return otherwise;
  const bool numeric = node.is(Node::Kind::number) || node.is(Node::Kind::integer);
  if (numeric && std::isfinite(node.number)) return node.number;
  problems.push_back({file, value->place, key + " = " + describe(node), "a number", ""});
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

}  // namespace tessera
