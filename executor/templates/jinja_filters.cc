#include "executor/templates/jinja_functions.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "executor/data/python_text.h"
#include "executor/templates/jinja_text.h"

namespace tessera {
namespace {

using Kind = JinjaValue::Kind;
using Sequence = JinjaValue::Sequence;
using Value = JinjaValue;
using Arguments = JinjaArguments;

std::string text_or(const Value* value, const std::string& otherwise) {
  return value == nullptr ? otherwise : text_of(*value);
}

Value mapped(const Value& subject, const Arguments& given) {
  const Value *attribute = given.find(1, "attribute"), *otherwise = given.find(2, "default");
  Value::List items;
  if (!is_true(subject)) return jinja_of(std::move(items), Sequence::generator);  // none, too
  for (const Value& item : items_of(subject)) {
    if (attribute != nullptr && given.values.empty()) {
      const Value found = member_at(item, text_of(*attribute));
      items.push_back(found.is(Kind::undefined) && otherwise != nullptr ? *otherwise : found);
    } else if (!given.values.empty()) {
      const Arguments rest{{given.values.begin() + 1, given.values.end()}, given.named};
      items.push_back(apply_filter(text_of(given.values[0]), item, rest));
    } else {
      throw TemplateError("map without an attribute or a filter");
    }
  }
  return jinja_of(std::move(items), Sequence::generator);
}

/// select, reject, selectattr and rejectattr.
Value selected(const Value& subject, const Arguments& given, bool keep, bool by_attribute) {
  std::vector<Value> rest = given.values;
  std::string attribute;
  if (by_attribute) {
    if (rest.empty()) throw TemplateError("selectattr without an attribute");
    attribute = text_of(rest.front());
    rest.erase(rest.begin());
  }
  std::string test;
  if (!rest.empty()) {
    test = text_of(rest.front());
    rest.erase(rest.begin());
  }
  Value::List items;
  if (!is_true(subject)) return jinja_of(std::move(items), Sequence::generator);
  for (const Value& item : items_of(subject)) {
    const Value looked_at = by_attribute ? member_at(item, attribute) : item;
    const bool passes = test.empty() ? is_true(looked_at) : apply_test(test, looked_at, {rest, {}});
    if (passes == keep) items.push_back(item);
  }
  return jinja_of(std::move(items), Sequence::generator);
}

/// str.splitlines of the text and one more line end, as the filter `indent` calls it.
std::vector<std::u32string> lines_of(std::u32string_view text) {
  constexpr std::u32string_view kEnds = U"\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029";
  std::vector<std::u32string> lines(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (kEnds.find(text[i]) == std::u32string_view::npos) {
      lines.back() += text[i];
      continue;
    }
    const bool both = text[i] == U'\r' && (i + 1 == text.size() || text[i + 1] == U'\n');
    if (both) ++i;
    if (i < text.size()) lines.emplace_back();
  }
  return lines;
}

Value indented(const Value& subject, const Arguments& given) {
  const Value* width = given.find(0, "width");
  const Value* first = given.find(1, "first");
  const Value* blank = given.find(2, "blank");
  const std::string space =
      width != nullptr && width->is(Kind::string)
          ? width->text
          : std::string(static_cast<std::size_t>(width == nullptr ? 4 : width->as_integer()), ' ');
  std::string result;
  bool is_first = true;
  for (const std::u32string& line : lines_of(code_points(text_of(subject)))) {
    const bool skip = is_first ? first == nullptr || !is_true(*first)
                               : line.empty() && (blank == nullptr || !is_true(*blank));
    if (!is_first) result += '\n';
    result += (skip ? "" : space) + utf8_of(line);
    is_first = false;
  }
  return jinja_of(std::move(result));
}

Value sorted(const Value& subject, const Arguments& given) {
  Value::List items = items_of(subject);
  const Value* attribute = given.find(2, "attribute");
  const Value* reverse = given.find(0, "reverse");
  const Value* by_case = given.find(1, "case_sensitive");
  const auto key = [&](const Value& item) {
    Value value = attribute == nullptr ? item : member_at(item, text_of(*attribute));
    const bool fold = by_case == nullptr || !is_true(*by_case);
    if (fold && value.is(Kind::string)) value.text = in_case(value.text, JinjaCase::lower);
    return value;
  };
  const bool down = reverse != nullptr && is_true(*reverse);
  std::ranges::stable_sort(items, [&](const Value& a, const Value& b) {
    return down ? compared(key(b), key(a)) < 0 : compared(key(a), key(b)) < 0;
  });
  return jinja_of(std::move(items));
}

/// dictsort: the pairs of a map in the order of their keys.
Value by_key(const Value& subject, const Arguments& given) {
  if (!given.values.empty() || !given.named.empty()) throw TemplateError("dictsort with arguments");
  return sorted(call_method("items", subject, {}),
                {{}, {{"attribute", jinja_of(std::string("0"))}}});
}

Value integer_filter(const Value& subject, const Arguments& given) {
  if (subject.is(Kind::number)) return jinja_of(static_cast<std::int64_t>(subject.number));
  if (subject.is_number()) return jinja_of(subject.as_integer());
  if (given.find(1, "base") != nullptr) throw TemplateError("int with a base");
  std::string text = stripped_text(text_of(subject), nullptr, true, true);
  if (text.find('_') != std::string::npos) throw TemplateError("int of '" + text + "'");
  if (text.starts_with('+') && !text.starts_with("+-")) text.erase(0, 1);
  const auto end = text.data() + text.size();
  std::int64_t whole = 0;
  const auto read = std::from_chars(text.data(), end, whole);
  if (read.ec == std::errc::result_out_of_range) throw TemplateError("an integer beyond 64 bits");
  if (read.ec == std::errc() && read.ptr == end) return jinja_of(whole);
  double number = 0;  // "42.5" is 42
  const auto as_double = std::from_chars(text.data(), end, number);
  if (as_double.ec == std::errc() && as_double.ptr == end && std::abs(number) < 0x1p63) {
    return jinja_of(static_cast<std::int64_t>(number));
  }
  const Value* otherwise = given.find(0, "default");
  return otherwise == nullptr ? jinja_of(std::int64_t{0}) : *otherwise;
}

Value default_filter(const Value& subject, const Arguments& given) {
  const Value* otherwise = given.find(0, "default_value");
  const Value* also_false = given.find(1, "boolean");
  const bool missing = subject.is(Kind::undefined) ||
                       (also_false != nullptr && is_true(*also_false) && !is_true(subject));
  if (!missing) return subject;
  return otherwise == nullptr ? jinja_of(std::string()) : *otherwise;
}

Value json_filter(const Value& subject, const Arguments& given) {
  if (given.find(0, "ensure_ascii") != nullptr || given.find(2, "separators") != nullptr ||
      given.find(3, "sort_keys") != nullptr) {
    throw TemplateError("tojson with other than an indent");
  }
  const Value* indent = given.find(1, "indent");
  const bool none = indent == nullptr || indent->is(Kind::none);
  return jinja_of(json_of(subject, none ? -1 : static_cast<int>(indent->as_integer())));
}

Value end_of(const Value& subject, bool last) {
  if (subject.is(Sequence::generator)) {  // `first` takes one item, and leaves the others
    if (last) throw TemplateError("the last item of a generator");
    if (subject.list->empty()) return jinja_undefined("first");
    Value item = std::move(subject.list->front());
    subject.list->erase(subject.list->begin());
    return item;
  }
  const Value::List items = items_of(subject);
  if (items.empty()) return jinja_undefined(last ? "last" : "first");
  return last ? items.back() : items.front();
}

Value reversed(const Value& subject) {
  const bool whole = subject.is(Sequence::generator);  // is made a list of first
  Value::List items = items_of(subject);
  std::ranges::reverse(items);
  if (!subject.is(Kind::string)) {
    return jinja_of(std::move(items), whole ? Sequence::list : Sequence::generator);
  }
  std::string text;
  for (const Value& item : items) text += item.text;
  return jinja_of(std::move(text));
}

Value absolute(const Value& subject) {
  if (subject.is(Kind::number)) return jinja_of(std::abs(subject.number));
  if (!subject.is_number()) throw TemplateError("abs of " + std::string(type_name(subject)));
  return jinja_of(std::abs(subject.as_integer()));
}

struct Filter {
  std::string_view name;
  Value (*run)(const Value& subject, const Arguments& given);
};

template <JinjaCase wanted>
Value case_filter(const Value& subject, const Arguments&) {
  return jinja_of(in_case(text_of(subject), wanted));
}

/// Words of the filter `title` begin after spaces, hyphens and opening brackets alone; those of
/// Python's method after anything that is no letter.
Value title_filter(const Value& subject, const Arguments&) {
  std::string text;
  std::u32string word;
  const auto end_word = [&] {
    if (word.empty()) return;
    text += in_case(utf8_of(word.substr(0, 1)), JinjaCase::upper);
    text += in_case(utf8_of(word.substr(1)), JinjaCase::lower);
    word.clear();
  };
  for (const char32_t c : code_points(text_of(subject))) {
    const bool between =
        is_python_space(c) || std::u32string_view(U"-({[<").find(c) != std::u32string_view::npos;
    if (between) end_word();
    if (between) {
      text += utf8_of(std::u32string_view(&c, 1));
    } else {
      word += c;
    }
  }
  end_word();
  return jinja_of(text);
}

constexpr Filter kFilters[] = {
    {"trim",
     [](const Value& s, const Arguments& a) {
       return jinja_of(stripped_text(text_of(s), a.find(0, "chars"), true, true));
     }},
    {"tojson", json_filter},
    {"length", [](const Value& s, const Arguments&) { return jinja_of(length_of(s)); }},
    {"count", [](const Value& s, const Arguments&) { return jinja_of(length_of(s)); }},
    {"upper", case_filter<JinjaCase::upper>},
    {"lower", case_filter<JinjaCase::lower>},
    {"title", title_filter},
    {"capitalize", case_filter<JinjaCase::capital>},
    {"join",
     [](const Value& s, const Arguments& a) {
       return joined(s, text_or(a.find(0, "d"), ""), a.find(1, "attribute"));
     }},
    {"default", default_filter},
    {"d", default_filter},
    {"first", [](const Value& s, const Arguments&) { return end_of(s, false); }},
    {"last", [](const Value& s, const Arguments&) { return end_of(s, true); }},
    {"replace",
     [](const Value& s, const Arguments& a) { return jinja_of(replaced_text(text_of(s), a)); }},
    {"string", [](const Value& s, const Arguments&) { return jinja_of(text_of(s)); }},
    {"safe", [](const Value& s, const Arguments&) { return s; }},
    {"list", [](const Value& s, const Arguments&) { return jinja_of(items_of(s)); }},
    {"items",
     [](const Value& s, const Arguments&) {
       const Value pairs = s.is(Kind::undefined) ? Value() : call_method("items", s, {});
       return jinja_of(items_of(pairs), Sequence::generator);
     }},
    {"map", mapped},
    {"select", [](const Value& s, const Arguments& a) { return selected(s, a, true, false); }},
    {"reject", [](const Value& s, const Arguments& a) { return selected(s, a, false, false); }},
    {"selectattr", [](const Value& s, const Arguments& a) { return selected(s, a, true, true); }},
    {"rejectattr", [](const Value& s, const Arguments& a) { return selected(s, a, false, true); }},
    {"indent", indented},
    {"sort", sorted},
    {"dictsort", [](const Value& s, const Arguments& a) { return by_key(s, a); }},
    {"reverse", [](const Value& s, const Arguments&) { return reversed(s); }},
    {"int", integer_filter},
    {"abs", [](const Value& s, const Arguments&) { return absolute(s); }}};

const Value& other(const Arguments& given) {
  if (given.values.empty()) throw TemplateError("a test without its argument");
  return given.values[0];
}

struct Test {
  std::string_view name;
  bool (*run)(const Value& subject, const Arguments& given);
};

bool is_equal(const Value& s, const Arguments& a) { return equal(s, other(a)); }

constexpr Test kTests[] = {
    {"defined", [](const Value& s, const Arguments&) { return !s.is(Kind::undefined); }},
    {"undefined", [](const Value& s, const Arguments&) { return s.is(Kind::undefined); }},
    {"none", [](const Value& s, const Arguments&) { return s.is(Kind::none); }},
    {"string", [](const Value& s, const Arguments&) { return s.is(Kind::string); }},
    {"mapping", [](const Value& s, const Arguments&) { return s.is(Kind::map); }},
    {"iterable",
     [](const Value& s, const Arguments&) {
       return s.is(Kind::list) || s.is(Kind::map) || s.is(Kind::string) || s.is(Kind::undefined);
     }},
    {"sequence",
     [](const Value& s, const Arguments&) {
       const bool unordered = s.is(Sequence::view) || s.is(Sequence::generator);
       return (s.is(Kind::list) && !unordered) || s.is(Kind::map) || s.is(Kind::string) ||
              s.is(Kind::undefined);
     }},
    {"number", [](const Value& s, const Arguments&) { return s.is_number(); }},
    {"integer", [](const Value& s, const Arguments&) { return s.is(Kind::integer); }},
    {"float", [](const Value& s, const Arguments&) { return s.is(Kind::number); }},
    {"boolean", [](const Value& s, const Arguments&) { return s.is(Kind::boolean); }},
    {"true", [](const Value& s, const Arguments&) { return s.is(Kind::boolean) && s.boolean; }},
    {"false", [](const Value& s, const Arguments&) { return s.is(Kind::boolean) && !s.boolean; }},
    {"equalto", is_equal},
    {"eq", is_equal},
    {"ne", [](const Value& s, const Arguments& a) { return !equal(s, other(a)); }},
    {"in", [](const Value& s, const Arguments& a) { return contains(other(a), s); }},
    {"odd", [](const Value& s, const Arguments&) { return s.as_integer() % 2 != 0; }},
    {"even", [](const Value& s, const Arguments&) { return s.as_integer() % 2 == 0; }},
    {"divisibleby", [](const Value& s, const Arguments& a) {
       const std::int64_t by = other(a).as_integer();
       if (by == 0) throw TemplateError("divisibleby 0");
       return s.as_integer() % by == 0;
     }}};

}  // namespace

const Value* Arguments::find(std::size_t i, std::string_view name) const {
  if (i < values.size()) return &values[i];
  for (const auto& [each, value] : named) {
    if (each == name) return &value;
  }
  return nullptr;
}

Value apply_filter(std::string_view name, const Value& subject, const Arguments& arguments) {
  const auto* filter = std::ranges::find(kFilters, name, &Filter::name);
  if (filter == std::end(kFilters)) throw TemplateError("the filter '" + std::string(name) + "'");
  return filter->run(subject, arguments);
}

bool apply_test(std::string_view name, const Value& subject, const Arguments& arguments) {
  const auto* test = std::ranges::find(kTests, name, &Test::name);
  if (test == std::end(kTests)) throw TemplateError("the test '" + std::string(name) + "'");
  return test->run(subject, arguments);
}

}  // namespace tessera
