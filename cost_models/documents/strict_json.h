// JSON as every reader of Tessera accepts it: RFC 8259 without its leniencies.
//
// Refused, with line:column and JSON pointer: duplicate keys, depth beyond the limit, integers
// outside 64 bits, numbers that overflow a double, comments, trailing text, byte-order marks,
// malformed UTF-8, more bytes, values or keys than ParseLimits has. Stateless.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cost_models/documents/document.h"
#include "cost_models/documents/problem_list.h"

namespace tessera {

/// nullopt when anything was appended to `problems`.
std::optional<Document> parse_json(std::string_view text, const std::string& file,
                                   Problems& problems, const ParseLimits& limits = {});

/// Parses as parse_json does, but an integer outside 64 bits is a Problem and stays, marked
/// Node::refused, so that what else is wrong with the file can be told as well. Callers look at
/// `problems`.
std::optional<Document> parse_json_as_far(std::string_view text, const std::string& file,
                                          Problems& problems, const ParseLimits& limits = {});

/// Parses as parse_json does, but an integer outside 64 bits is a number, as it is to Python: for
/// files that its programs write (transformers' tokenizer_config.json has int(1e30) for no limit).
std::optional<Document> parse_python_json(std::string_view text, const std::string& file,
                                          Problems& problems, const ParseLimits& limits = {});

/// Text of a tree: two spaces per level, keys in order, lists of scalars on one line, the shortest
/// digits that read back as the same double (a fraction or exponent marks a number that is not an
/// integer), a newline at the end. Throws Error(internal) for a number that is not finite.
std::string json_text(const Node& root);

/// One line without spaces, for JSONL.
std::string json_line(const Node& root);

}  // namespace tessera
