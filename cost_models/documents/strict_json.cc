#include "cost_models/documents/strict_json.h"

#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

constexpr std::size_t kMostSyntaxProblems = 20;

/// Counts what the lexer has consumed, because SAX events carry no position.
struct CountingIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at = nullptr;
  const char** furthest = nullptr;

  reference operator*() const { return *at; }
  CountingIterator& operator++() {
    *furthest = ++at;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at == other.at; }
  bool operator!=(const CountingIterator& other) const { return at != other.at; }
};

/// What integers outside 64 bits become: Problems; Problems and refused values; doubles.
enum class WideIntegers : std::uint8_t { problems, refused_values, numbers };

/// Fills a Document from nlohmann's SAX events; returns false from an event to stop.
class TreeBuilder {
 public:
  using json = nlohmann::json;

  TreeBuilder(std::string_view text, Document& document, const ParseLimits& limits,
              WideIntegers wide, Problems& problems)
      : text_(text), document_(document), limits_(limits), wide_(wide), problems_(problems) {}

  CountingIterator begin() { return {text_.data(), &consumed_}; }
  CountingIterator end() { return {text_.data() + text_.size(), &consumed_}; }

  bool null() { return place({}); }
  bool boolean(bool value) { return place(node_of(value)); }
  bool number_integer(std::int64_t value) { return place(node_of(value), true); }
  bool number_unsigned(std::uint64_t value) {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      if (wide_ == WideIntegers::numbers) return place(node_of(static_cast<double>(value)), true);
      return place({}, true) && refuse_integer();
    }
    return place(node_of(static_cast<std::int64_t>(value)), true);
  }
  bool number_float(double value, const std::string& text) {
    const bool whole = text.find_first_of(".eE") == std::string::npos;
    const bool refused = whole && wide_ != WideIntegers::numbers;
    return place(node_of(value), true) && (!refused || refuse_integer());
  }
  bool string(std::string& value) {
    Node node = node_of(std::string_view{});
    node.text = std::move(value);
    return place(std::move(node));
  }
  bool binary(json::binary_t&) { return false; }

  bool start_object(std::size_t) { return open(map_node()); }
  bool end_object() { return close(); }
  bool start_array(std::size_t) { return open(list_node()); }
  bool end_array() { return close(); }

  bool key(std::string& value) {
    token_start();
    end_ = consumed_;
    Node& map = *open_.back().node;
    if (map.keys.size() >= limits_.keys) {
      refuse("more than " + std::to_string(limits_.keys) + " keys",
             "at most " + std::to_string(limits_.keys) + " keys in a map");
      return false;
    }
    const bool fresh = open_.back().keys.insert(value).second;
    map.keys.push_back(std::move(value));
    if (fresh) return true;
    refuse("the key '" + map.keys.back() + "' again", "every key once");
    return problems_here_ < kMostSyntaxProblems;
  }

  bool parse_error(std::size_t position, const std::string& token, const json::exception& error) {
    constexpr int kNumberOverflow = 406;  // nlohmann's out_of_range
    if (error.id == kNumberOverflow) return refuse_number(token);
    const std::size_t offset = position > 0 ? position - 1 : 0;
    const bool ended = offset >= text_.size();
    std::string reason = error.what();
    if (const auto cut = reason.find("; last read"); cut != std::string::npos) reason.resize(cut);
    if (const auto cut = reason.rfind(": "); cut != std::string::npos) reason.erase(0, cut + 2);
    // A line's end in a string is the last that there is of a file that was cut off.
    const bool in_string =
        reason == "missing closing quote" || reason.starts_with("control character");
    const bool cut_off =
        in_string && text_.find_first_not_of(" \t\r\n", offset) == std::string_view::npos;
    if (cut_off) reason = "the file ends within a string";
    problems_.push_back(
        {.file = document_.file,
         .place = line_column(text_, offset) + pointer(),
         .found = ended || cut_off ? "the end of the text" : "'" + token.substr(0, 60) + "'",
         .expected = "JSON",
         .hint = reason});
    ++problems_here_;
    return false;
  }

  bool ok() const { return problems_here_ == 0; }
  /// Every problem was of a single value.
  bool whole() const {
    return problems_here_ == refused_values_ && problems_here_ < kMostSyntaxProblems;
  }

 private:
  struct Open {
    Node* node;
    std::unordered_set<std::string> keys;
  };

  /// Moves to the first byte of the token whose event has come, keeping line and column.
  void token_start() {
    const char* const last = text_.data() + text_.size();
    while (end_ < last && (*end_ == ' ' || *end_ == '\t' || *end_ == '\n' || *end_ == '\r' ||
                           *end_ == ',' || *end_ == ':')) {
      ++end_;
    }
    for (; counted_ < end_; ++counted_) {
      if (*counted_ == '\n') {
        ++line_;
        line_start_ = counted_ + 1;
      }
    }
    start_ = end_;
  }

  Node* append(Node node, bool number) {
    token_start();
    ++values_;
    node.line = line_;
    node.column = static_cast<std::int32_t>(start_ - line_start_) + 1;
    if (number) {  // the lexer has read one byte too many
      const auto length = std::string_view(start_, text_.data() + text_.size() - start_)
                              .find_first_not_of("0123456789+-.eE");
      end_ = length == std::string_view::npos ? text_.data() + text_.size() : start_ + length;
    } else {
      end_ = consumed_;
    }
    if (open_.empty()) {
      document_.root = std::move(node);
      return &document_.root;
    }
    open_.back().node->items.push_back(std::move(node));
    return &open_.back().node->items.back();
  }

  bool place(Node node, bool number = false) {
    last_ = append(std::move(node), number);
    return within_values();
  }

  bool within_values() {
    if (values_ <= limits_.values) return true;
    refuse("more than " + std::to_string(limits_.values) + " values",
           "at most " + std::to_string(limits_.values) + " values");
    return false;
  }

  bool open(Node node) {
    Node* const placed = append(std::move(node), false);
    if (open_.size() >= static_cast<std::size_t>(limits_.depth)) {
      refuse("more than " + std::to_string(limits_.depth) + " levels",
             "at most " + std::to_string(limits_.depth) + " levels");
      return false;
    }
    open_.push_back({placed, {}});
    return within_values();
  }

  bool close() {
    end_ = consumed_;
    open_.pop_back();
    return true;
  }

  /// The parser stops here, before an event of the value.
  bool refuse_number(const std::string& token) {
    token_start();
    if (!open_.empty()) open_.back().node->items.emplace_back();
    refuse("'" + token.substr(0, 60) + "'", "a number that a double can hold");
    return false;
  }

  bool refuse_integer() {
    const std::string digits(start_, end_);
    refuse(digits.substr(0, 60), "an integer of 64 bits");
    last_->refused = true;
    ++refused_values_;
    return problems_here_ < kMostSyntaxProblems;
  }

  void refuse(std::string found, std::string expected) {
    ++problems_here_;
    const std::string place =
        std::to_string(line_) + ":" + std::to_string(start_ - line_start_ + 1) + pointer();
    problems_.push_back({document_.file, place, std::move(found), std::move(expected), {}});
  }

  /// " (/a/0/b)" for the value or key read last; empty at the root.
  std::string pointer() const {
    std::string text;
    for (const Open& open : open_) {
      const bool map = open.node->is(Node::Kind::map);
      if (map ? open.node->keys.empty() : open.node->items.empty()) break;
      text += '/';
      if (!map) {
        text += std::to_string(open.node->items.size() - 1);
        continue;
      }
      for (const char c : open.node->keys.back()) {
        text += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
      }
    }
    return text.empty() ? text : " (" + text + ")";
  }

  std::string_view text_;
  Document& document_;
  const ParseLimits& limits_;
  WideIntegers wide_;
  Problems& problems_;
  std::vector<Open> open_;
  Node* last_ = nullptr;  // the scalar placed last
  std::size_t problems_here_ = 0, refused_values_ = 0, values_ = 0;
  const char* consumed_ = text_.data();
  const char* end_ = text_.data();      // of the last token
  const char* start_ = text_.data();    // of the last token
  const char* counted_ = text_.data();  // line_ and line_start_ hold up to here
  const char* line_start_ = text_.data();
  std::int32_t line_ = 1;
};

void write_string(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          out += "\\u00";
          out += kHex[static_cast<unsigned char>(c) >> 4];
          out += kHex[c & 15];
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

void write_number(std::string& out, double value) {
  if (!std::isfinite(value)) {
    throw Error(ExitCode::internal, "a number to be written as JSON is not finite");
  }
  char buffer[32];
  const std::string_view digits(buffer,
                                std::to_chars(buffer, buffer + sizeof buffer, value).ptr - buffer);
  out += digits;
  if (digits.find_first_of(".e") == std::string_view::npos) out += ".0";
}

bool flat(const Node& node) {
  for (const Node& item : node.items) {
    if (item.is(Node::Kind::map) || (item.is(Node::Kind::list) && !item.items.empty()))
      return false;
  }
  return true;
}

/// `indent` < 0 writes one line.
void write(std::string& out, const Node& node, int indent) {
  switch (node.kind) {
    case Node::Kind::null:
      out += "null";
      return;
    case Node::Kind::boolean:
      out += node.boolean ? "true" : "false";
      return;
    case Node::Kind::integer:
      out += std::to_string(node.integer);
      return;
    case Node::Kind::number:
      write_number(out, node.number);
      return;
    case Node::Kind::string:
      write_string(out, node.text);
      return;
    case Node::Kind::list:
    case Node::Kind::map:
      break;
  }
  const bool map = node.is(Node::Kind::map);
  const bool one_line = indent < 0 || node.items.empty() || (!map && flat(node));
  const auto newline = [&](int level) {
    if (!one_line) out += '\n' + std::string(static_cast<std::size_t>(2 * level), ' ');
  };
  out += map ? '{' : '[';
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    if (i > 0) out += one_line && indent >= 0 ? ", " : ",";
    newline(indent + 1);
    if (map) {
      write_string(out, node.keys[i]);
      out += indent < 0 ? ":" : ": ";
    }
    write(out, node.items[i], indent < 0 ? -1 : indent + 1);
  }
  newline(indent);
  out += map ? '}' : ']';
}

std::optional<Document> parse(std::string_view text, const std::string& file, WideIntegers wide,
                              Problems& problems, const ParseLimits& limits) {
  if (!check_text(text, file, limits, problems)) return std::nullopt;
  Document document{.file = file, .syntax = Syntax::json, .root = {}};
  TreeBuilder builder(text, document, limits, wide, problems);
  const bool parsed = nlohmann::json::sax_parse(builder.begin(), builder.end(), &builder);
  const bool keeps_refused = wide == WideIntegers::refused_values;
  if (!parsed || !(builder.ok() || (keeps_refused && builder.whole()))) return std::nullopt;
  return document;
}

}  // namespace

std::optional<Document> parse_json(std::string_view text, const std::string& file,
                                   Problems& problems, const ParseLimits& limits) {
  return parse(text, file, WideIntegers::problems, problems, limits);
}

std::optional<Document> parse_json_as_far(std::string_view text, const std::string& file,
                                          Problems& problems, const ParseLimits& limits) {
  return parse(text, file, WideIntegers::refused_values, problems, limits);
}

std::optional<Document> parse_python_json(std::string_view text, const std::string& file,
                                          Problems& problems, const ParseLimits& limits) {
  return parse(text, file, WideIntegers::numbers, problems, limits);
}

std::string json_text(const Node& root) {
  std::string out;
  write(out, root, 0);
  out += '\n';
  return out;
}

std::string json_line(const Node& root) {
  std::string out;
  write(out, root, -1);
  return out;
}

}  // namespace tessera
