#include "cost_models/documents/strict_yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <charconv>
#include <cmath>
#include <sstream>
#include <unordered_set>
#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

constexpr std::size_t kMostSyntaxProblems = 20;

struct Stop {};  // leaves yaml-cpp's recursion; caught in parse_yaml

bool digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// The core schema's number: [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool looks_like_number(std::string_view text) {
  if (const auto exponent = text.find_first_of("eE"); exponent != std::string_view::npos) {
    std::string_view power = text.substr(exponent + 1);
    if (power.starts_with('-') || power.starts_with('+')) power.remove_prefix(1);
    if (!digits(power)) return false;
    text = text.substr(0, exponent);
  }
  const auto point = text.find('.');
  if (point == std::string_view::npos) return digits(text);
  const std::string_view whole = text.substr(0, point), fraction = text.substr(point + 1);
  return (digits(whole) && (fraction.empty() || digits(fraction))) ||
         (whole.empty() && digits(fraction));
}

/// Whether the quoted scalar that begins at `offset` ends; yaml-cpp 0.7 takes the end of the text
/// for a closing quote. True for what is not a quote.
bool closes(std::string_view text, std::size_t offset) {
  if (offset >= text.size() || (text[offset] != '"' && text[offset] != '\'')) return true;
  const char quote = text[offset];
  for (std::size_t i = offset + 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      if (quote == '"' || i + 1 >= text.size() || text[i + 1] != quote) return true;
      ++i;  // '' is one apostrophe
    }
  }
  return false;
}

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, Document& document, const ParseLimits& limits,
              Problems& problems)
      : text_(text), document_(document), limits_(limits), problems_(problems) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) refuse(mark, "a second document", "one document");
  }
  void OnDocumentEnd() override {}
  void OnAnchor(const YAML::Mark& mark, const std::string& name) override {
    tell(mark, "the anchor '&" + name + "'", "plain values",
         "anchors and aliases are not supported");
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    value(mark,
          refused(mark, "an alias", "the value itself", "anchors and aliases are not supported"));
  }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    check(mark, "");
    if (expects_key()) {
      refuse(mark, "an empty key", "a name");
      throw Stop{};
    }
    // yaml-cpp's mark of an empty value is that of the token after it.
    value(open_.empty() || !open_.back().node->is(Node::Kind::map) ? mark : open_.back().key_mark,
          Node{});
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& text) override {
    check(mark, tag);
    if (tag == "!" && !closes(text_, static_cast<std::size_t>(mark.pos))) {
      refuse(mark, "a quote that is never closed", "a closing quote");
    }
    if (expects_key()) return key(mark, text);
    value(mark, tag == "!" ? node_of(std::string_view(text)) : plain(mark, text));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, list_node());
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, map_node());
  }
  void OnMapEnd() override { open_.pop_back(); }

  void refuse(const YAML::Mark& mark, std::string found, std::string expected,
              std::string hint = {}) {
    const std::string place =
        mark.is_null() ? "" : std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
    problems_.push_back(
        {document_.file, place, std::move(found), std::move(expected), std::move(hint)});
    if (++problems_here_ >= kMostSyntaxProblems) throw Stop{};
  }
  bool ok() const { return problems_here_ == 0; }
  /// Every problem was of a single key or value.
  bool whole() const { return problems_here_ == told_ && problems_here_ < kMostSyntaxProblems; }

 private:
  struct Open {
    Node* node;
    std::unordered_set<std::string> keys;
    YAML::Mark key_mark;  // of the last key
  };

  bool expects_key() const {
    return !open_.empty() && open_.back().node->is(Node::Kind::map) &&
           open_.back().node->keys.size() == open_.back().node->items.size();
  }

  void check(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") {
      tell(mark, "the tag '" + tag + "'", "values without tags");
    }
  }

  void key(const YAML::Mark& mark, const std::string& text) {
    Open& map = open_.back();
    if (!map.keys.insert(text).second) {
      tell(mark, "the key '" + text + "' again", "every key once");
    }
    map.node->keys.push_back(text);
    map.key_mark = mark;
  }

  Node* value(const YAML::Mark& mark, Node node) {
    node.line = mark.line + 1;
    node.column = mark.column + 1;
    if (open_.empty()) {
      document_.root = std::move(node);
      return &document_.root;
    }
    open_.back().node->items.push_back(std::move(node));
    return &open_.back().node->items.back();
  }

  void open(const YAML::Mark& mark, const std::string& tag, Node node) {
    check(mark, tag);
    if (expects_key()) {
      refuse(mark, node.is(Node::Kind::map) ? "a map as a key" : "a list as a key", "a name",
             "quote '{' and '[' in text");
      throw Stop{};
    }
    if (open_.size() >= static_cast<std::size_t>(limits_.depth)) {
      refuse(mark, "more than " + std::to_string(limits_.depth) + " levels",
             "at most " + std::to_string(limits_.depth) + " levels");
      throw Stop{};
    }
    Node* const placed = value(mark, std::move(node));
    open_.push_back({placed, {}, mark});
  }

  Node plain(const YAML::Mark& mark, const std::string& text) {
    if (text == "~" || text == "null" || text == "Null" || text == "NULL") return {};
    if (text == "true" || text == "True" || text == "TRUE") return node_of(true);
    if (text == "false" || text == "False" || text == "FALSE") return node_of(false);
    std::string_view body = text;
    if (body.starts_with('-') || body.starts_with('+')) body.remove_prefix(1);
    if (body == ".inf" || body == ".Inf" || body == ".INF" || text == ".nan" || text == ".NaN" ||
        text == ".NAN") {
      return refused(mark, text, "a finite number");
    }
    if (!looks_like_number(body)) return node_of(std::string_view(text));
    if (digits(body) && body.size() > 1 && body[0] == '0') return node_of(std::string_view(text));
    return number(mark, text, text[0] == '-' ? std::string_view(text) : body);
  }

  /// What is wrong with one key or value; the tree around it is whole.
  void tell(const YAML::Mark& mark, std::string found, std::string expected,
            std::string hint = {}) {
    ++told_;
    refuse(mark, std::move(found), std::move(expected), std::move(hint));
  }

  /// A value that is told here and read no further.
  Node refused(const YAML::Mark& mark, const std::string& text, std::string expected,
               std::string hint = {}) {
    constexpr std::size_t kShown = 60;
    tell(mark, text.substr(0, kShown), std::move(expected), std::move(hint));
    Node node;
    node.refused = true;
    return node;
  }

  Node number(const YAML::Mark& mark, const std::string& text, std::string_view literal) {
    const char* const last = literal.data() + literal.size();
    if (digits(literal.substr(literal[0] == '-' ? 1 : 0))) {
      std::int64_t value = 0;
      if (std::from_chars(literal.data(), last, value).ec == std::errc{}) return node_of(value);
      return refused(mark, text, "an integer of 64 bits");
    }
    double value = 0;
    if (std::from_chars(literal.data(), last, value).ec == std::errc{}) return node_of(value);
    return refused(mark, text, "a number that a double can hold");
  }

  std::string_view text_;
  Document& document_;
  const ParseLimits& limits_;
  Problems& problems_;
  std::vector<Open> open_;
  std::size_t problems_here_ = 0, told_ = 0;
  int documents_ = 0;
};

/// Where flow collections nest deeper than the limit, npos elsewhere: yaml-cpp keeps every open
/// bracket of a document before it tells of the first. Quoted text and comments do not count.
std::size_t too_deep(std::string_view text, int limit) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool first =
        i == 0 || std::string_view(" \t\r\n[{,:").find(text[i - 1]) != std::string_view::npos;
    if (c == '#' && first) {
      while (i + 1 < text.size() && text[i + 1] != '\n') ++i;
    } else if ((c == '"' || c == '\'') && first) {
      const std::size_t opened = i++;
      while (i < text.size() && text[i] != c) i += c == '"' && text[i] == '\\' ? 2 : 1;
      if (i >= text.size()) i = opened;  // never closed: no quote
    } else if (c == '[' || c == '{') {
      if (++depth > limit) return i;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return std::string_view::npos;
}

std::optional<Document> parse(std::string_view text, const std::string& file, bool keeps_refused,
                              Problems& problems, const ParseLimits& limits) {
  if (!check_text(text, file, limits, problems)) return std::nullopt;
  if (const std::size_t deep = too_deep(text, limits.depth); deep != std::string_view::npos) {
    const std::string levels = std::to_string(limits.depth) + " levels";
    problems.push_back(
        {file, line_column(text, deep), "more than " + levels, "at most " + levels, {}});
    return std::nullopt;
  }
  Document document{.file = file, .syntax = Syntax::yaml, .root = {}};
  TreeBuilder builder(text, document, limits, problems);
  std::istringstream stream{std::string(text)};
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) {
      builder.refuse(YAML::Mark{}, "an empty document", "a map");
    } else {
      while (parser.HandleNextDocument(builder)) {
      }
    }
  } catch (const Stop&) {
  } catch (const YAML::Exception& error) {
    problems.push_back({.file = file,
                        .place = error.mark.is_null() ? ""
                                                      : std::to_string(error.mark.line + 1) + ":" +
                                                            std::to_string(error.mark.column + 1),
                        .found = "malformed text",
                        .expected = "YAML",
                        .hint = error.msg});
    return std::nullopt;
  }
  if (!builder.ok() && !(keeps_refused && builder.whole())) return std::nullopt;
  return document;
}

}  // namespace

std::optional<Document> parse_yaml(std::string_view text, const std::string& file,
                                   Problems& problems, const ParseLimits& limits) {
  return parse(text, file, false, problems, limits);
}

std::optional<Document> parse_yaml_as_far(std::string_view text, const std::string& file,
                                          Problems& problems, const ParseLimits& limits) {
  return parse(text, file, true, problems, limits);
}

std::string place_of_key(const Document& document, const std::string& key) {
  const Node* node = &document.root;
  for (std::size_t at = 0; node != nullptr && at < key.size();) {
    const std::size_t dot = std::min(key.find('.', at), key.size());
    const std::string part = key.substr(at, dot - at);
    at = dot + 1;
    if (node->is(Node::Kind::list)) {
      std::size_t item = node->items.size();
      const char* const end = part.data() + part.size();
      const bool whole = std::from_chars(part.data(), end, item).ptr == end;
      node = whole && item < node->items.size() ? &node->items[item] : nullptr;
    } else {
      node = node->is(Node::Kind::map) ? node->find(part) : nullptr;
    }
  }
  if (node == nullptr || node->line == 0) return key;
  return std::to_string(node->line) + ":" + std::to_string(node->column) + " (" + key + ")";
}

}  // namespace tessera
