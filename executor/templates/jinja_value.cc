#include "executor/templates/jinja_value.h"

#include <utf8proc.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "executor/data/python_text.h"

namespace tessera {
namespace {

using Kind = JinjaValue::Kind;
using Sequence = JinjaValue::Sequence;

JinjaValue of_kind(Kind kind) {
  JinjaValue value;
  value.kind = kind;
  return value;
}

/// repr() of a float: the shortest digits that read back.
std::string number_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char buffer[40];
  const double size = std::abs(number);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number, format).ptr;
  std::string text(buffer, end);
  if (plain && text.find('.') == text.npos) text += ".0";
  return text;
}

/// Python's str.isprintable(): no controls, surrogates or separators, but for the space.
bool is_printable(char32_t c) {
  if (c == ' ') return true;
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category != UTF8PROC_CATEGORY_CN &&
         (category < UTF8PROC_CATEGORY_ZS || category > UTF8PROC_CATEGORY_CO);
}

/// \xNN, \uNNNN or \UNNNNNNNN.
std::string escaped(char32_t c) {
  char text[12];
  const auto code = static_cast<unsigned>(c);
  std::snprintf(text, sizeof text,
                code < 0x100     ? "\\x%02x"
                : code < 0x10000 ? "\\u%04x"
                                 : "\\U%08x",
                code);
  return text;
}

std::string quoted(const std::string& text) {
  const bool double_quotes = text.find('\'') != text.npos && text.find('"') == text.npos;
  const char32_t quote = double_quotes ? U'"' : U'\'';
  std::string result(1, static_cast<char>(quote));
  for (const char32_t c : code_points(text)) {
    if (c == '\n')
      result += "\\n";
    else if (c == '\t')
      result += "\\t";
    else if (c == '\r')
      result += "\\r";
    else if (c == '\\' || c == quote)
      (result += '\\') += static_cast<char>(c);
    else if (is_printable(c))
      result += utf8_of(std::u32string_view(&c, 1));
    else
      result += escaped(c);
  }
  return result + static_cast<char>(quote);
}

std::string_view type_name(Sequence sequence, std::string_view of_view) {
  switch (sequence) {
    case Sequence::list:
      return "list";
    case Sequence::tuple:
      return "tuple";
    case Sequence::range:
      return "range";
    case Sequence::view:
      return of_view;
    case Sequence::generator:
      return "generator";
  }
  return "";
}

std::string repr_of_list(const JinjaValue& value) {
  if (value.is(Sequence::range)) return value.text;
  if (value.is(Sequence::generator)) throw TemplateError("the text of a generator");
  std::string text;
  for (const JinjaValue& item : *value.list) text += (text.empty() ? "" : ", ") + repr_of(item);
  if (value.is(Sequence::tuple)) return "(" + text + (value.list->size() == 1 ? ",)" : ")");
  return value.is(Sequence::view) ? value.text + "([" + text + "])" : "[" + text + "]";
}

std::string json_string(const std::string& text) {
  constexpr std::string_view kNamed = "\"\\\n\r\t\b\f", kNames = "\"\\nrtbf";
  constexpr char kHex[] = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (const std::size_t named = kNamed.find(c); named != std::string_view::npos) {
      (result += '\\') += kNames[named];
    } else if (byte < 0x20) {
      result += std::string("\\u00") + kHex[byte >> 4] + kHex[byte & 15];
    } else {
      result += c;
    }
  }
  return result + "\"";
}

}  // namespace

JinjaValue jinja_none() { return of_kind(Kind::none); }
JinjaValue jinja_of(bool value) {
  JinjaValue result = of_kind(Kind::boolean);
  result.boolean = value;
  return result;
}
JinjaValue jinja_of(std::int64_t value) {
  JinjaValue result = of_kind(Kind::integer);
  result.integer = value;
  return result;
}
JinjaValue jinja_of(double value) {
  JinjaValue result = of_kind(Kind::number);
  result.number = value;
  return result;
}
JinjaValue jinja_of(std::string value) {
  JinjaValue result = of_kind(Kind::string);
  result.text = std::move(value);
  return result;
}
JinjaValue jinja_of(JinjaValue::List items, Sequence sequence) {
  JinjaValue result = of_kind(Kind::list);
  result.sequence = sequence;
  result.list = std::make_shared<JinjaValue::List>(std::move(items));
  return result;
}
JinjaValue jinja_of(JinjaValue::Map members) {
  JinjaValue result = of_kind(Kind::map);
  result.map = std::make_shared<JinjaValue::Map>(std::move(members));
  return result;
}

JinjaValue jinja_of(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return jinja_none();
    case Node::Kind::boolean:
      return jinja_of(node.boolean);
    case Node::Kind::integer:
      return jinja_of(node.integer);
    case Node::Kind::number:
      return jinja_of(node.number);
    case Node::Kind::string:
      return jinja_of(node.text);
    case Node::Kind::list: {
      JinjaValue::List items;
      for (const Node& item : node.items) items.push_back(jinja_of(item));
      return jinja_of(std::move(items));
    }
    case Node::Kind::map: {
      JinjaValue::Map members;
      for (std::size_t i = 0; i < node.keys.size(); ++i) {
        members.emplace_back(node.keys[i], jinja_of(node.items[i]));
      }
      return jinja_of(std::move(members));
    }
  }
  return {};
}

JinjaValue jinja_undefined(std::string name) {
  JinjaValue value;
  value.text = std::move(name);
  return value;
}

bool is_true(const JinjaValue& value) {
  switch (value.kind) {
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
      return value.boolean;
    case Kind::integer:
      return value.integer != 0;
    case Kind::number:
      return value.number != 0;
    case Kind::string:
      return !value.text.empty();
    case Kind::list:
      return value.is(Sequence::generator) || !value.list->empty();
    case Kind::map:
      return !value.map->empty();
    case Kind::space:
    case Kind::macro:
      return true;
  }
  return false;
}

bool equal(const JinjaValue& a, const JinjaValue& b) {
  if (a.is_number() && b.is_number()) return a.as_double() == b.as_double();
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::string:
      return a.text == b.text;
    case Kind::list: {
      if (a.sequence != b.sequence) return false;
      if (a.is(Sequence::generator)) return a.list == b.list;
      if (a.list->size() != b.list->size()) return false;
      for (std::size_t i = 0; i < a.list->size(); ++i) {
        if (!equal((*a.list)[i], (*b.list)[i])) return false;
      }
      return true;
    }
    case Kind::map: {
      if (a.map->size() != b.map->size()) return false;
      for (const auto& [key, value] : *a.map) {
        const JinjaValue* other = member(b, key);
        if (other == nullptr || !equal(value, *other)) return false;
      }
      return true;
    }
    case Kind::space:
      return a.map == b.map;
    case Kind::macro:
      return a.macro == b.macro;
    default:
      return true;
  }
}

int compared(const JinjaValue& a, const JinjaValue& b) {
  if (a.is_number() && b.is_number()) {
    const double x = a.as_double(), y = b.as_double();
    return x < y ? -1 : x > y ? 1 : 0;
  }
  // UTF-8 has the order of its code points.
  if (a.is(Kind::string) && b.is(Kind::string)) {
    const int order = a.text.compare(b.text);
    return order < 0 ? -1 : order > 0 ? 1 : 0;
  }
  throw TemplateError("'" + std::string(type_name(a)) + "' and '" + std::string(type_name(b)) +
                      "' have no order");
}

std::string text_of(const JinjaValue& value) {
  if (value.is(Kind::undefined)) return {};
  return value.is(Kind::string) ? value.text : repr_of(value);
}

std::string repr_of(const JinjaValue& value) {
  switch (value.kind) {
    case Kind::undefined:
      return "Undefined";
    case Kind::none:
      return "None";
    case Kind::boolean:
      return value.boolean ? "True" : "False";
    case Kind::integer:
      return std::to_string(value.integer);
    case Kind::number:
      return number_text(value.number);
    case Kind::string:
      return quoted(value.text);
    case Kind::list:
      return repr_of_list(value);
    case Kind::map: {
      std::string text;
      for (const auto& [key, item] : *value.map) {
        text += (text.empty() ? "" : ", ") + quoted(key) + ": " + repr_of(item);
      }
      return "{" + text + "}";
    }
    case Kind::space:
    case Kind::macro:
      throw TemplateError("the text of a " + std::string(type_name(value)));
  }
  return {};
}

std::string json_of(const JinjaValue& value, int indent, int depth) {
  const std::string line =
      indent < 0 ? "" : "\n" + std::string(static_cast<std::size_t>(indent * (depth + 1)), ' ');
  const std::string last =
      indent < 0 ? "" : "\n" + std::string(static_cast<std::size_t>(indent * depth), ' ');
  const std::string comma = indent < 0 ? ", " : ",";
  std::string text;
  switch (value.kind) {
    case Kind::none:
      return "null";
    case Kind::boolean:
      return value.boolean ? "true" : "false";
    case Kind::integer:
      return std::to_string(value.integer);
    case Kind::number:
      return number_text(value.number);
    case Kind::string:
      return json_string(value.text);
    case Kind::list:
      if (!value.is(Sequence::list) && !value.is(Sequence::tuple)) {
        throw TemplateError("tojson of " + std::string(type_name(value)));
      }
      for (const JinjaValue& item : *value.list) {
        text += (text.empty() ? "" : comma) + line + json_of(item, indent, depth + 1);
      }
      return text.empty() ? "[]" : "[" + text + last + "]";
    case Kind::map:
      for (const auto& [key, item] : *value.map) {
        text += (text.empty() ? "" : comma) + line + json_string(key) + ": " +
                json_of(item, indent, depth + 1);
      }
      return text.empty() ? "{}" : "{" + text + last + "}";
    default:
      throw TemplateError("tojson of " + std::string(type_name(value)));
  }
}

const JinjaValue* member(const JinjaValue& map, std::string_view key) {
  for (const auto& [name, value] : *map.map) {
    if (name == key) return &value;
  }
  return nullptr;
}

JinjaValue::List items_of(const JinjaValue& value) {
  JinjaValue::List items;
  switch (value.kind) {
    case Kind::undefined:
      return items;
    case Kind::list:
      return value.is(Sequence::generator) ? std::exchange(*value.list, {}) : *value.list;
    case Kind::map:
      for (const auto& [key, unused] : *value.map) items.push_back(jinja_of(key));
      return items;
    case Kind::string:
      for (const char32_t c : code_points(value.text)) {
        items.push_back(jinja_of(utf8_of(std::u32string_view(&c, 1))));
      }
      return items;
    default:
      throw TemplateError("'" + std::string(type_name(value)) + "' has no items");
  }
}

std::int64_t length_of(const JinjaValue& value) {
  if (value.is(Sequence::generator)) throw TemplateError("the length of a generator");
  return static_cast<std::int64_t>(items_of(value).size());
}

std::string_view type_name(const JinjaValue& value) {
  switch (value.kind) {
    case Kind::undefined:
      return "undefined";
    case Kind::none:
      return "none";
    case Kind::boolean:
      return "bool";
    case Kind::integer:
      return "int";
    case Kind::number:
      return "float";
    case Kind::string:
      return "str";
    case Kind::list:
      return type_name(value.sequence, value.text);
    case Kind::map:
      return "dict";
    case Kind::space:
      return "namespace";
    case Kind::macro:
      return "macro";
  }
  return "";
}

}  // namespace tessera
