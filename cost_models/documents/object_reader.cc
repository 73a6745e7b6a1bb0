#include "cost_models/documents/object_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "cost_models/documents/printable.h"
#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

const Node kNoKeys = map_node();
constexpr const char* kPlainText = "text without control characters";
// Names, paths and sentences: what is longer is no such thing, and nobody can show it.
constexpr std::size_t kLongestText = 1 << 16;
constexpr const char* kShortText = "text of at most 65536 bytes";

std::string number_text(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

std::string expected_text(Whole range) {
  const Whole any;
  const bool low = range.least != any.least, high = range.most != any.most;
  if (low && high) {
    return "an integer from " + std::to_string(range.least) + " to " + std::to_string(range.most);
  }
  if (low && range.least == 1) return "a positive integer";
  if (low) return "an integer of at least " + std::to_string(range.least);
  if (high) return "an integer of at most " + std::to_string(range.most);
  return "an integer";
}

std::string expected_text(Real range) {
  const Real any;
  const bool low = range.least != any.least, high = range.most != any.most;
  const std::string from = range.above ? "above " : high ? "from " : "of at least ";
  if (low && high) {
    return "a number " + from + number_text(range.least) + " to " + number_text(range.most);
  }
  if (low) return "a number " + from + number_text(range.least);
  if (high) return "a number of at most " + number_text(range.most);
  return "a number";
}

/// An integer, also where it is written as a real number ("1024.0", "1e3"): the formats tell the
/// two apart by their spelling alone. Beyond 2^53 a real number may stand for another integer.
std::optional<std::int64_t> whole_number(const Node& node) {
  if (node.is(Node::Kind::integer)) return node.integer;
  constexpr double kExact = 1LL << 53;
  const bool whole = node.is(Node::Kind::number) && std::abs(node.number) <= kExact &&
                     node.number == std::floor(node.number);
  return whole ? std::optional(static_cast<std::int64_t>(node.number)) : std::nullopt;
}

/// YAML 1.1 read these as booleans; here they are strings, and the reader should say so.
std::string boolean_hint(const Node& node) {
  if (!node.is(Node::Kind::string)) return {};
  static constexpr std::array<std::string_view, 8> kWords{"yes", "no", "on", "off",
                                                          "Yes", "No", "On", "Off"};
  const bool word = std::find(kWords.begin(), kWords.end(), node.text) != kWords.end();
  return word || node.text == "true" || node.text == "false" ? "write true or false, unquoted" : "";
}

std::string quoted_number_hint(const Node& node) {
  if (!node.is(Node::Kind::string) || node.text.empty()) return {};
  const bool numeric = node.text.find_first_not_of("0123456789+-.eE_,") == std::string::npos;
  return numeric ? "write the number without quotes, separators or leading zeros" : "";
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return names.size() == 1 ? text : "one of " + text;
}

/// The nearest known key, or the one of the initials of an unknown one ("lr" of "learning_rate").
std::string hint_of(const std::string& key, const std::vector<std::string>& known) {
  std::string hint = did_you_mean(key, known);
  if (!hint.empty() || key.empty()) return hint;
  std::string initials = key.substr(0, 1);
  for (std::size_t i = 1; i < key.size(); ++i) {
    if (key[i - 1] == '_' && key[i] != '_') initials += key[i];
  }
  const bool is_known = initials.size() > 1 && std::ranges::find(known, initials) != known.end();
  return is_known ? "did you mean '" + initials + "'?" : "";
}

}  // namespace

ObjectReader::ObjectReader(const Document& document, Problems& problems)
    : ObjectReader(&document, &problems, &document.root, {}) {
  if (node_->is(Node::Kind::map)) return;
  problems.push_back({document.file,
                      place_of(*node_, ""),
                      describe(*node_),
                      document.syntax == Syntax::json ? "an object" : "a map",
                      {}});
  node_ = &kNoKeys;
}

ObjectReader::ObjectReader(const Document* document, Problems* problems, const Node* node,
                           std::string path)
    : document_(document), problems_(problems), node_(node), path_(std::move(path)) {}

std::string ObjectReader::path_of(std::string_view key) const {
  if (document_->syntax == Syntax::yaml) {
    return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
  }
  std::string path = path_ + "/";
  for (const char c : key) path += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return path;
}

std::string ObjectReader::place_of(const Node& node, const std::string& path) const {
  if (node.line == 0) return path;
  const std::string at = std::to_string(node.line) + ":" + std::to_string(node.column);
  return path.empty() ? at : at + " (" + path + ")";
}

std::string ObjectReader::place(std::string_view key) const {
  const Node* const value = node_->find(key);
  return place_of(value == nullptr ? *node_ : *value, key.empty() ? path_ : path_of(key));
}

const Node* ObjectReader::find(std::string_view key) {
  known_.emplace_back(key);
  return node_->find(key);
}

bool ObjectReader::has(std::string_view key) const { return node_->find(key) != nullptr; }

const std::vector<std::string>& ObjectReader::keys() const { return node_->keys; }

const Node* ObjectReader::present(std::string_view key, bool need) {
  const Node* const value = find(key);
  if (value != nullptr && value->refused) return nullptr;
  if (value != nullptr && !value->is(Node::Kind::null)) return value;
  if (need && node_ != &kNoKeys) {
    problems_->push_back({document_->file,
                          place(key),
                          value == nullptr ? "no '" + std::string(key) + "'" : "null",
                          "a value",
                          {}});
  }
  return nullptr;
}

bool ObjectReader::integer_at(const Node& node, const std::string& path, std::int64_t& out,
                              Whole range) {
  if (node.refused) return false;
  const std::optional<std::int64_t> whole = whole_number(node);
  if (whole && *whole >= range.least && *whole <= range.most) {
    out = *whole;
    return true;
  }
  problems_->push_back({document_->file, place_of(node, path), describe(node), expected_text(range),
                        quoted_number_hint(node)});
  return false;
}

bool ObjectReader::number_at(const Node& node, const std::string& path, double& out, Real range) {
  if (node.refused) return false;
  const bool numeric = node.is(Node::Kind::integer) || node.is(Node::Kind::number);
  const bool inside = node.number >= range.least && node.number <= range.most &&
                      !(range.above && node.number == range.least);
  if (numeric && inside) {
    out = node.number;
    return true;
  }
  problems_->push_back({document_->file, place_of(node, path), describe(node), expected_text(range),
                        quoted_number_hint(node)});
  return false;
}

void ObjectReader::read(std::string_view key, bool need, std::int64_t& out, Whole range) {
  if (const Node* value = present(key, need)) integer_at(*value, path_of(key), out, range);
}

void ObjectReader::read(std::string_view key, bool need, double& out, Real range) {
  if (const Node* value = present(key, need)) number_at(*value, path_of(key), out, range);
}

void ObjectReader::read(std::string_view key, bool need, bool& out) {
  const Node* const value = present(key, need);
  if (value == nullptr) return;
  if (value->is(Node::Kind::boolean)) {
    out = value->boolean;
  } else {
    refuse(key, "true or false", boolean_hint(*value));
  }
}

void ObjectReader::read(std::string_view key, bool need, std::string& out, bool may_be_empty) {
  const Node* const value = present(key, need);
  if (value == nullptr) return;
  if (!value->is(Node::Kind::string)) {
    refuse(key, "a string",
           value->is(Node::Kind::list) || value->is(Node::Kind::map)
               ? ""
               : "quote it to make it a string");
  } else if (value->text.empty() && !may_be_empty) {
    refuse(key, "a string that is not empty");
  } else if (has_control_characters(value->text)) {
    refuse(key, kPlainText);
  } else if (value->text.size() > kLongestText) {
    refuse(key, kShortText);
  } else {
    out = value->text;
  }
}

namespace {
Whole of_int(Whole range) {
  return {std::max<std::int64_t>(range.least, std::numeric_limits<int>::min()),
          std::min<std::int64_t>(range.most, std::numeric_limits<int>::max())};
}
}  // namespace

void ObjectReader::required(std::string_view key, std::int64_t& out, Whole range) {
  read(key, true, out, range);
}
void ObjectReader::optional(std::string_view key, std::int64_t& out, Whole range) {
  read(key, false, out, range);
}
void ObjectReader::required(std::string_view key, int& out, Whole range) {
  std::int64_t wide = out;
  read(key, true, wide, of_int(range));
  out = static_cast<int>(wide);
}
void ObjectReader::optional(std::string_view key, int& out, Whole range) {
  std::int64_t wide = out;
  read(key, false, wide, of_int(range));
  out = static_cast<int>(wide);
}
void ObjectReader::required(std::string_view key, double& out, Real range) {
  read(key, true, out, range);
}
void ObjectReader::optional(std::string_view key, double& out, Real range) {
  read(key, false, out, range);
}
void ObjectReader::required(std::string_view key, bool& out) { read(key, true, out); }
void ObjectReader::optional(std::string_view key, bool& out) { read(key, false, out); }
void ObjectReader::required(std::string_view key, std::string& out, bool may_be_empty) {
  read(key, true, out, may_be_empty);
}
void ObjectReader::optional(std::string_view key, std::string& out) { read(key, false, out, true); }

void ObjectReader::optional(std::string_view key, std::optional<std::int64_t>& out, Whole range) {
  const Node* const value = present(key, false);
  std::int64_t read_value = 0;
  if (value != nullptr && integer_at(*value, path_of(key), read_value, range)) out = read_value;
}

void ObjectReader::optional(std::string_view key, std::optional<double>& out, Real range) {
  const Node* const value = present(key, false);
  double read_value = 0;
  if (value != nullptr && number_at(*value, path_of(key), read_value, range)) out = read_value;
}

const Node* ObjectReader::list_node_of(std::string_view key, bool need) {
  const Node* const value = present(key, need);
  if (value == nullptr || value->is(Node::Kind::list)) return value;
  refuse(key, "a list");
  return nullptr;
}

void ObjectReader::list(std::string_view key, std::vector<std::string>& out, bool need) {
  const Node* const value = list_node_of(key, need);
  if (value == nullptr) return;
  out.clear();
  for (const Node& item : value->items) {
    const bool text = item.is(Node::Kind::string);
    const bool plain = text && !has_control_characters(item.text);
    if (plain && item.text.size() <= kLongestText) {
      out.push_back(item.text);
    } else {
      problems_->push_back({document_->file,
                            place_of(item, path_of(key)),
                            describe(item),
                            plain  ? kShortText
                            : text ? kPlainText
                                   : "a string",
                            {}});
    }
  }
}

void ObjectReader::list(std::string_view key, std::vector<std::int64_t>& out, Whole range,
                        bool need) {
  const Node* const value = list_node_of(key, need);
  if (value == nullptr) return;
  out.clear();
  for (const Node& item : value->items) {
    std::int64_t number = 0;
    if (integer_at(item, path_of(key), number, range)) out.push_back(number);
  }
}

void ObjectReader::list(std::string_view key, std::vector<double>& out, Real range, bool need) {
  const Node* const value = list_node_of(key, need);
  if (value == nullptr) return;
  out.clear();
  for (const Node& item : value->items) {
    double number = 0;
    if (number_at(item, path_of(key), number, range)) out.push_back(number);
  }
}

std::optional<ObjectReader> ObjectReader::object(std::string_view key, bool need) {
  const Node* const value = present(key, need);
  if (value == nullptr) return std::nullopt;
  if (value->is(Node::Kind::map)) return ObjectReader(document_, problems_, value, path_of(key));
  refuse(key, document_->syntax == Syntax::json ? "an object" : "a map");
  return std::nullopt;
}

std::vector<ObjectReader> ObjectReader::objects(std::string_view key, bool need) {
  std::vector<ObjectReader> readers;
  const Node* const value = list_node_of(key, need);
  if (value == nullptr) return readers;
  for (std::size_t i = 0; i < value->items.size(); ++i) {
    const Node& item = value->items[i];
    const bool json = document_->syntax == Syntax::json;
    const std::string path = path_of(key) + (json ? "/" : ".") + std::to_string(i);
    if (item.is(Node::Kind::map)) {
      readers.push_back(ObjectReader(document_, problems_, &item, path));
    } else {
      problems_->push_back({document_->file,
                            place_of(item, path),
                            describe(item),
                            json ? "an object" : "a map",
                            {}});
    }
  }
  return readers;
}

std::optional<std::size_t> ObjectReader::choice(std::string_view key,
                                                const std::vector<std::string>& names) {
  const Node& value = *node_->find(key);
  if (value.is(Node::Kind::string)) {
    const auto found = std::find(names.begin(), names.end(), value.text);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  }
  refuse(key, joined(names), value.is(Node::Kind::string) ? did_you_mean(value.text, names) : "");
  return std::nullopt;
}

void ObjectReader::refuse(std::string_view key, std::string expected, std::string hint) {
  const Node* const value = node_->find(key);
  refuse(key, value == nullptr ? "no '" + std::string(key) + "'" : describe(*value),
         std::move(expected), std::move(hint));
}

void ObjectReader::refuse(std::string_view key, std::string found, std::string expected,
                          std::string hint) {
  problems_->push_back(
      {document_->file, place(key), std::move(found), std::move(expected), std::move(hint)});
}

void ObjectReader::refuse_unknown_keys() {
  constexpr std::size_t kMostTold = 100;  // a file of another format has no key that is known
  std::size_t unknown = 0;
  for (std::size_t i = 0; i < node_->keys.size(); ++i) {
    const std::string& key = node_->keys[i];
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    if (++unknown > kMostTold) continue;
    problems_->push_back({document_->file, place_of(node_->items[i], path_of(key)),
                          "the unknown key '" + key + "'", "a known key", hint_of(key, known_)});
  }
  if (unknown <= kMostTold) return;
  problems_->push_back({document_->file,
                        place_of(*node_, path_),
                        std::to_string(unknown - kMostTold) + " more unknown keys",
                        "known keys",
                        {}});
}

}  // namespace tessera
