// YAML as every reader of Tessera accepts it: one document of maps, lists and scalars.
//
// Plain scalars resolve by YAML 1.2's core schema (so `no` and `on` are strings); numbers with
// leading zeros stay strings. Refused, with line:column: anchors, aliases, tags, duplicate keys,
// keys that are not scalars, a second document, depth beyond the limit, .inf and .nan, integers
// outside 64 bits, byte-order marks, malformed UTF-8, oversized files. Stateless.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "cost_models/documents/document.h"
#include "cost_models/documents/problem_list.h"

namespace tessera {

/// Bytes of a YAML file that a person writes, at most.
inline constexpr std::size_t kMostYaml = std::size_t{1} << 20;

/// nullopt when anything was appended to `problems`.
std::optional<Document> parse_yaml(std::string_view text, const std::string& file,
                                   Problems& problems,
                                   const ParseLimits& limits = {.bytes = kMostYaml});

/// Parses as parse_yaml does, but what is wrong with one key or value alone (a key that stands
/// twice, a tag, an anchor, a number outside 64 bits) is a Problem beside a tree that is whole, in
/// which such a value is marked Node::refused: so what else is wrong with the file can be told as
/// well. Callers look at `problems`.
std::optional<Document> parse_yaml_as_far(std::string_view text, const std::string& file,
                                          Problems& problems,
                                          const ParseLimits& limits = {.bytes = kMostYaml});

/// "line:column (key)" of the value of a key with dots between its parts, of a list's item its
/// number (from 0); the key alone where there is none.
std::string place_of_key(const Document& document, const std::string& key);

}  // namespace tessera
