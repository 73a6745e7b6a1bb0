// Methods and members of values, and the text functions that filters share with them.
#include <algorithm>

#include "executor/data/python_text.h"
#include "executor/templates/jinja_text.h"
#include "executor/templates/python_case.h"

namespace tessera {
namespace {

using Kind = JinjaValue::Kind;
using Value = JinjaValue;
using Arguments = JinjaArguments;

Value list_of(const std::vector<std::u32string>& parts) {
  Value::List items;
  for (const std::u32string& part : parts) items.push_back(jinja_of(utf8_of(part)));
  return jinja_of(std::move(items));
}

/// str.split: at a separator, or at runs of white space.
Value split_text(const std::string& text, const Arguments& given) {
  const Value* separator = given.find(0, "sep");
  const Value* most = given.find(1, "maxsplit");
  const auto limit = most == nullptr ? std::int64_t{-1} : most->as_integer();
  const std::u32string points = code_points(text);
  if (separator != nullptr && !separator->is(Kind::none)) {
    const std::u32string by = code_points(string_of(*separator, "split"));
    if (by.empty()) throw TemplateError("split at nothing");
    std::vector<std::u32string> parts = split_at(points, by);
    while (limit >= 0 && static_cast<std::int64_t>(parts.size()) > limit + 1) {
      const std::u32string last = std::move(parts.back());
      parts.pop_back();
      parts.back() += by + last;
    }
    return list_of(parts);
  }
  std::vector<std::u32string> parts;
  std::u32string_view rest = points;
  while (true) {
    while (!rest.empty() && is_python_space(rest.front())) rest.remove_prefix(1);
    if (rest.empty()) return list_of(parts);
    const bool last = limit >= 0 && static_cast<std::int64_t>(parts.size()) == limit;
    const auto end = last ? rest.end() : std::ranges::find_if(rest, is_python_space);
    parts.emplace_back(rest.begin(), end);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.begin()));
  }
}

Value view_of(Value::List items, const char* type) {
  Value view = jinja_of(std::move(items), Value::Sequence::view);
  view.text = type;
  return view;
}

Value pairs_of(const Value& map) {
  Value::List items;
  for (const auto& [key, value] : *map.map) {
    items.push_back(jinja_of(Value::List{jinja_of(key), value}, Value::Sequence::tuple));
  }
  return view_of(std::move(items), "dict_items");
}

Value values_of(const Value& map) {
  Value::List items;
  for (const auto& [key, value] : *map.map) items.push_back(value);
  return view_of(std::move(items), "dict_values");
}

Value string_method(std::string_view name, const std::string& text, const Arguments& given) {
  const Value* first = given.find(0, "");
  const auto affix = [&](bool start) {
    if (given.values.size() != 1 || !given.named.empty()) {
      throw TemplateError(std::string(name) + " with other than one argument");
    }
    const bool several = first->is(Value::Sequence::tuple);
    for (const Value& each : several ? *first->list : Value::List{*first}) {
      const std::string& part = string_of(each, "startswith");
      if (start ? text.starts_with(part) : text.ends_with(part)) return jinja_of(true);
    }
    return jinja_of(false);
  };
  if (name == "strip") return jinja_of(stripped_text(text, first, true, true));
  if (name == "lstrip") return jinja_of(stripped_text(text, first, true, false));
  if (name == "rstrip") return jinja_of(stripped_text(text, first, false, true));
  if (name == "startswith") return affix(true);
  if (name == "endswith") return affix(false);
  if (name == "split") return split_text(text, given);
  if (name == "replace") return jinja_of(replaced_text(text, given));
  if (name == "upper") return jinja_of(in_case(text, JinjaCase::upper));
  if (name == "lower") return jinja_of(in_case(text, JinjaCase::lower));
  if (name == "title") return jinja_of(in_case(text, JinjaCase::title));
  if (name == "capitalize") return jinja_of(in_case(text, JinjaCase::capital));
  if (name == "join" && first != nullptr) {
    return joined(*first, text);
  }
  if (name == "find" && given.values.size() == 1) {
    const std::size_t found = code_points(text).find(code_points(string_of(*first, "find")));
    return jinja_of(found == std::u32string::npos ? std::int64_t{-1}
                                                  : static_cast<std::int64_t>(found));
  }
  throw TemplateError("the method '" + std::string(name) + "' of a string");
}

}  // namespace

const std::string& string_of(const Value& value, const char* what) {
  if (!value.is(Kind::string)) {
    throw TemplateError(std::string(what) + " of " + std::string(type_name(value)));
  }
  return value.text;
}

std::string stripped_text(const std::string& text, const Value* set, bool left, bool right) {
  const std::u32string points = code_points(text);
  const bool spaces = set == nullptr || set->is(Kind::none);
  const std::u32string characters = spaces ? U"" : code_points(string_of(*set, "strip"));
  const auto goes = [&](char32_t c) {
    return spaces ? is_python_space(c) : characters.find(c) != characters.npos;
  };
  std::u32string_view rest = points;
  while (left && !rest.empty() && goes(rest.front())) rest.remove_prefix(1);
  while (right && !rest.empty() && goes(rest.back())) rest.remove_suffix(1);
  return utf8_of(rest);
}

std::string in_case(const std::string& text, JinjaCase wanted) {
  const std::u32string points = code_points(text);
  std::u32string changed;
  bool inside = false;  // a word, or the text after its first character
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool up = wanted == JinjaCase::upper || (wanted != JinjaCase::lower && !inside);
    changed += up ? upper_case(points[i], wanted != JinjaCase::upper) : lower_case(points, i);
    inside = wanted == JinjaCase::capital || is_cased(points[i]);
  }
  return utf8_of(changed);
}

std::string replaced_text(const std::string& text, const Arguments& given) {
  const Value *from = given.find(0, "old"), *to = given.find(1, "new");
  if (from == nullptr || to == nullptr || given.find(2, "count") != nullptr) {
    throw TemplateError("replace with other than two arguments");
  }
  const std::u32string old = code_points(text_of(*from));
  if (old.empty()) throw TemplateError("replace of nothing");
  return utf8_of(replaced(code_points(text), old, code_points(text_of(*to))));
}

Value member_at(Value value, const std::string& path) {
  for (const std::u32string& part : split_at(code_points(path), U".")) {
    const std::string key = utf8_of(part);
    const bool index =
        !key.empty() && std::ranges::all_of(key, [](char c) { return c >= '0' && c <= '9'; });
    value = item_of(value,
                    index ? jinja_of(static_cast<std::int64_t>(std::stoll(key))) : jinja_of(key));
  }
  return value;
}

Value joined(const Value& items, const std::string& between, const Value* attribute) {
  std::string text;
  bool first = true;
  for (const Value& item : items_of(items)) {
    if (!first) text += between;
    first = false;
    text += text_of(attribute == nullptr ? item : member_at(item, text_of(*attribute)));
  }
  return jinja_of(std::move(text));
}

Value call_method(std::string_view name, const Value& subject, const Arguments& arguments) {
  if (subject.is(Kind::string)) return string_method(name, subject.text, arguments);
  if (subject.is(Kind::map)) {
    if (name == "items") return pairs_of(subject);
    if (name == "keys") return view_of(items_of(subject), "dict_keys");
    if (name == "values") return values_of(subject);
    const Value *key = arguments.find(0, ""), *otherwise = arguments.find(1, "");
    if (name == "get" && key != nullptr) {
      const Value* found = key->is(Kind::string) ? member(subject, key->text) : nullptr;
      return found != nullptr ? *found : otherwise != nullptr ? *otherwise : jinja_none();
    }
  }
  if (subject.is(Kind::undefined)) throw TemplateError("'" + subject.text + "' is undefined");
  throw TemplateError("the method '" + std::string(name) + "' of " +
                      std::string(type_name(subject)));
}

Value item_of(const Value& subject, const Value& key) {
  const bool has_members = subject.is(Kind::map) || subject.is(Kind::space);
  if (has_members && key.is(Kind::string)) {
    const Value* found = member(subject, key.text);
    return found == nullptr ? jinja_undefined(key.text) : *found;
  }
  const bool unordered =
      subject.is(Value::Sequence::view) || subject.is(Value::Sequence::generator);
  const bool has_items = (subject.is(Kind::list) && !unordered) || subject.is(Kind::string);
  if (has_items && (key.is(Kind::integer) || key.is(Kind::boolean))) {
    const Value::List items = subject.is(Kind::list) ? Value::List{} : items_of(subject);
    const Value::List& all = subject.is(Kind::list) ? *subject.list : items;
    const auto count = static_cast<std::int64_t>(all.size());
    const std::int64_t at = key.as_integer() + (key.as_integer() < 0 ? count : 0);
    if (at >= 0 && at < count) return all[static_cast<std::size_t>(at)];
  }
  if (subject.is(Kind::undefined)) throw TemplateError("'" + subject.text + "' is undefined");
  return jinja_undefined(text_of(key));
}

bool contains(const Value& whole, const Value& part) {
  if (whole.is(Kind::string)) return whole.text.find(string_of(part, "'in'")) != std::string::npos;
  if (whole.is(Kind::map)) return part.is(Kind::string) && member(whole, part.text) != nullptr;
  const Value::List items = items_of(whole);
  return std::ranges::any_of(items, [&](const Value& item) { return equal(item, part); });
}

}  // namespace tessera
