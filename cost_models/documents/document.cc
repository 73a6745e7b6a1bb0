#include "cost_models/documents/document.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "cost_models/documents/printable.h"
#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

Node of_kind(Node::Kind kind) {
  Node node;
  node.kind = kind;
  return node;
}

std::string number_text(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  const auto found = std::find(keys.begin(), keys.end(), key);
  return found == keys.end() ? nullptr : &items[static_cast<std::size_t>(found - keys.begin())];
}

Node node_of(bool value) {
  Node node = of_kind(Node::Kind::boolean);
  node.boolean = value;
  return node;
}

Node node_of(std::int64_t value) {
  Node node = of_kind(Node::Kind::integer);
  node.integer = value;
  node.number = static_cast<double>(value);
  return node;
}

Node node_of(int value) { return node_of(std::int64_t{value}); }

Node node_of(double value) {
  Node node = of_kind(Node::Kind::number);
  node.number = value;
  return node;
}

Node node_of(std::string_view value) {
  Node node = of_kind(Node::Kind::string);
  node.text = value;
  return node;
}

Node list_node() { return of_kind(Node::Kind::list); }
Node map_node() { return of_kind(Node::Kind::map); }

void add(Node& map, std::string_view key, Node value) {
  map.keys.emplace_back(key);
  map.items.push_back(std::move(value));
}

std::string describe(const Node& node) {
  constexpr std::size_t kLongest = 60;
  switch (node.kind) {
    case Node::Kind::null:
      return "null";
    case Node::Kind::boolean:
      return node.boolean ? "true" : "false";
    case Node::Kind::integer:
      return std::to_string(node.integer);
    case Node::Kind::number:
      return number_text(node.number);
    case Node::Kind::string:
      return node.text.size() <= kLongest ? '"' + node.text + '"'
                                          : '"' + node.text.substr(0, kLongest) + "...\"";
    case Node::Kind::list:
      return "a list of " + std::to_string(node.items.size()) + " items";
    case Node::Kind::map:
      return "a map of " + std::to_string(node.items.size()) + " keys";
  }
  return {};
}

bool check_text(std::string_view text, const std::string& file, const ParseLimits& limits,
                Problems& problems) {
  const auto refuse = [&](std::string place, std::string found, std::string expected,
                          std::string hint = {}) {
    problems.push_back(
        {file, std::move(place), std::move(found), std::move(expected), std::move(hint)});
    return false;
  };
  if (text.size() > limits.bytes) {
    return refuse({}, std::to_string(text.size()) + " bytes",
                  "at most " + std::to_string(limits.bytes) + " bytes");
  }
  if (text.starts_with("\xEF\xBB\xBF") || text.starts_with("\xFE\xFF") ||
      text.starts_with("\xFF\xFE")) {
    return refuse("1:1", "a byte-order mark", "plain UTF-8", "save the file as UTF-8 without BOM");
  }
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '\0') return refuse(line_column(text, i), "a NUL byte", "text");
    const std::size_t length = utf8_length(text, i);
    if (length == 0) return refuse(line_column(text, i), "a byte that is not UTF-8", "UTF-8");
    i += length;
  }
  return true;
}

std::string line_column(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  const std::size_t column =
      newline == std::string_view::npos ? before.size() : before.size() - newline - 1;
  return std::to_string(lines + 1) + ":" + std::to_string(column + 1);
}

}  // namespace tessera
