#include "executor/data/tokenizer_nodes.h"

#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

using Kind = Node::Kind;

constexpr std::int64_t kLargestId = (1 << 24) - 1;
constexpr std::size_t kMostProblems = 50;

}  // namespace

void TokenizerNodes::refuse(const Node& at, const std::string& place, std::string found,
                            std::string expected) {
  if (problems_.size() >= kMostProblems) return;
  const std::string position =
      at.line > 0 ? std::to_string(at.line) + ":" + std::to_string(at.column) : "1:1";
  problems_.push_back({.file = file_,
                       .place = position + " (" + place + ")",
                       .found = std::move(found),
                       .expected = std::move(expected)});
}

std::string TokenizerNodes::text(const Node& map, const std::string& place, const char* key) {
  const Node* node = map.find(key);
  if (node != nullptr && node->is(Kind::string)) return node->text;
  refuse(node == nullptr ? map : *node, place + "/" + key,
         node == nullptr ? "nothing" : describe(*node), "a string");
  return {};
}

bool TokenizerNodes::flag(const Node& map, const std::string& place, const char* key,
                          bool absent_value) {
  const Node* node = map.find(key);
  if (absent(node)) return absent_value;
  if (!node->is(Kind::boolean)) {
    refuse(*node, place + "/" + key, describe(*node), "true or false");
  }
  return node->boolean;
}

std::optional<std::int32_t> TokenizerNodes::id(const Node& node, const std::string& place) {
  if (node.is(Kind::integer) && node.integer >= 0 && node.integer <= kLargestId) {
    return static_cast<std::int32_t>(node.integer);
  }
  refuse(node, place, describe(node), "an id of 0 to " + std::to_string(kLargestId));
  return std::nullopt;
}

const Node* TokenizerNodes::typed(const Node* node, const std::string& place, std::string& type) {
  if (absent(node)) return nullptr;
  if (!node->is(Kind::map)) {
    refuse(*node, place, describe(*node), "an object");
    return nullptr;
  }
  type = text(*node, place, "type");
  return type.empty() ? nullptr : node;
}

const Node* TokenizerNodes::list(const Node& map, const std::string& place, const char* key) {
  const Node* node = map.find(key);
  if (node != nullptr && node->is(Kind::list)) return node;
  refuse(node == nullptr ? map : *node, place + "/" + key,
         node == nullptr ? "nothing" : describe(*node), "a list");
  return nullptr;
}

std::string TokenizerNodes::pattern(const Node& map, const std::string& place, const char* key) {
  const Node* node = map.find(key);
  const Node* plain = node != nullptr && node->is(Kind::map) ? node->find("String") : nullptr;
  if (plain != nullptr && plain->is(Kind::string) && !plain->text.empty()) return plain->text;
  refuse(node == nullptr ? map : *node, place + "/" + key,
         node == nullptr ? "nothing" : describe(*node), "{\"String\": text}");
  return {};
}

}  // namespace tessera
