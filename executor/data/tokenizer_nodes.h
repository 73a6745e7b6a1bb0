// The parts of tokenizer.json while it is read: every defect becomes a Problem with its place.
//
// Internal to the tokenizer's readers. One owner, one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cost_models/documents/problem_list.h"
#include "cost_models/documents/strict_json.h"

namespace tessera {

class TokenizerNodes {
 public:
  TokenizerNodes(const std::string& file, Problems& problems) : file_(file), problems_(problems) {}

  const std::string& file() const { return file_; }
  Problems& problems() { return problems_; }

  /// A Problem at the node's line, of which `place` is the JSON pointer; the first fifty only.
  void refuse(const Node& at, const std::string& place, std::string found, std::string expected);

  static bool absent(const Node* node) { return node == nullptr || node->is(Node::Kind::null); }
  /// The text of a string member, or empty with a Problem.
  std::string text(const Node& map, const std::string& place, const char* key);
  bool flag(const Node& map, const std::string& place, const char* key, bool absent_value);
  std::optional<std::int32_t> id(const Node& node, const std::string& place);
  /// The object and its "type", or null with a Problem (nothing when absent).
  const Node* typed(const Node* node, const std::string& place, std::string& type);
  /// A member that is a list, or null with a Problem.
  const Node* list(const Node& map, const std::string& place, const char* key);
  /// The text of {"String": text} below `key`, or empty with a Problem.
  std::string pattern(const Node& map, const std::string& place, const char* key);

 private:
  const std::string& file_;
  Problems& problems_;
};

}  // namespace tessera
