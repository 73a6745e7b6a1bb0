// The tree that both strict parsers (strict_json.h, strict_yaml.h) fill and ObjectReader reads.
//
// A plain value without any library's types, so that every reader is written once for JSON and YAML
// and compiles fast. Lines and columns count from 1; columns count bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem_list.h"

namespace tessera {

struct Node {
  enum class Kind : std::uint8_t { null, boolean, integer, number, string, list, map };

  Kind kind = Kind::null;
  bool boolean = false;
  bool refused = false;  // the parser has told what is wrong with this value
  std::int32_t line = 0, column = 0;
  std::int64_t integer = 0;
  double number = 0;              // also set for integers
  std::string text;               // of a string
  std::vector<std::string> keys;  // of a map, in the file's order; items[i] belongs to keys[i]
  std::vector<Node> items;        // of a list or a map

  /// The value of `key`, or nullptr. Linear in the number of keys.
  const Node* find(std::string_view key) const;

  bool is(Kind other) const { return kind == other; }
};

/// Builders for writers.
Node node_of(bool value);
Node node_of(std::int64_t value);
Node node_of(int value);
Node node_of(double value);
Node node_of(std::string_view value);
Node list_node();
Node map_node();
/// Appends a member to a map. Precondition: `map` has no such key.
void add(Node& map, std::string_view key, Node value);

/// A value as a message shows it: "null", "true", "-1", "\"text\"", "a list of 3 items".
std::string describe(const Node& node);

enum class Syntax : std::uint8_t { json, yaml };

struct Document {
  std::string file;  // as messages name it
  Syntax syntax = Syntax::json;
  Node root;
};

/// Limits of a parser; what exceeds them is a Problem, never an exception.
struct ParseLimits {
  std::size_t bytes = std::size_t{16} << 20;
  int depth = 64;
  // Of a JSON document, whose values take 112 bytes each; keys are those of one map.
  std::size_t values = std::size_t{1} << 21, keys = std::size_t{1} << 18;
};

/// The whole file, which must be a regular one of at most `limit` bytes: a missing or unreadable
/// file, a pipe and a device are Problems, told without waiting.
std::optional<std::string> read_text_file(const std::filesystem::path& file, std::size_t limit,
                                          Problems& problems);

/// Writes through a temporary file beside it, fsync and rename; a device or a pipe is written
/// itself. Throws Error(io) with the file and the reason; a file that was there is then unchanged.
void write_text_file(const std::filesystem::path& file, std::string_view text);

/// Appends a Problem where `text` is longer than the limit, starts with a byte-order mark, holds a
/// NUL or is not UTF-8; true when it is fine. Both parsers begin with it.
bool check_text(std::string_view text, const std::string& file, const ParseLimits& limits,
                Problems& problems);

/// "line:column" of a byte offset.
std::string line_column(std::string_view text, std::size_t offset);

}  // namespace tessera
