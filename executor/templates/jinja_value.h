// Values of Jinja templates, with Python's rules for truth, equality and text.
//
// Plain values; lists and maps are shared and, but for namespaces and generators, not changed once
// made. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cost_models/documents/document.h"

namespace tessera {

/// What a template does that it cannot: an undefined value, a wrong type, raise_exception().
struct TemplateError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct JinjaStatement;

struct JinjaValue {
  enum class Kind : std::uint8_t {
    undefined,
    none,
    boolean,
    integer,
    number,
    string,
    list,
    map,
    space,  // a namespace(), whose members a template may set
    macro
  };
  /// What a list is to Python: its text, and what else it can.
  enum class Sequence : std::uint8_t {
    list,
    tuple,
    range,     // its text is JinjaValue::text
    view,      // of a map; JinjaValue::text is the name of its type
    generator  // of filters: true whatever it has, and empty once its items are taken
  };
  using List = std::vector<JinjaValue>;
  using Map = std::vector<std::pair<std::string, JinjaValue>>;  // in order of insertion

  Kind kind = Kind::undefined;
  bool boolean = false;
  std::int64_t integer = 0;
  double number = 0;
  std::string text;  // of a string, and as Sequence says; of an undefined value its name
  std::shared_ptr<List> list;
  Sequence sequence = Sequence::list;
  std::shared_ptr<Map> map;  // of a space, too
  const JinjaStatement* macro = nullptr;

  bool is(Kind other) const { return kind == other; }
  bool is(Sequence other) const { return kind == Kind::list && sequence == other; }
  bool is_number() const {
    return kind == Kind::integer || kind == Kind::number || kind == Kind::boolean;
  }
  /// An integer or boolean as an integer, any number as a double.
  std::int64_t as_integer() const { return kind == Kind::boolean ? boolean : integer; }
  double as_double() const {
    return kind == Kind::number ? number : static_cast<double>(as_integer());
  }
};

JinjaValue jinja_none();
JinjaValue jinja_of(bool value);
JinjaValue jinja_of(std::int64_t value);
JinjaValue jinja_of(double value);
JinjaValue jinja_of(std::string value);
JinjaValue jinja_of(JinjaValue::List items,
                    JinjaValue::Sequence sequence = JinjaValue::Sequence::list);
JinjaValue jinja_of(JinjaValue::Map members);
JinjaValue jinja_of(const Node& node);
JinjaValue jinja_undefined(std::string name);

bool is_true(const JinjaValue& value);
bool equal(const JinjaValue& a, const JinjaValue& b);
/// -1, 0 or 1. Throws TemplateError for values that Python does not order.
int compared(const JinjaValue& a, const JinjaValue& b);

/// str() and repr() of Python.
std::string text_of(const JinjaValue& value);
std::string repr_of(const JinjaValue& value);
/// json.dumps(value, ensure_ascii=False, indent=indent); no indent below 0.
std::string json_of(const JinjaValue& value, int indent, int depth = 0);

/// The member of a map, or nullptr.
const JinjaValue* member(const JinjaValue& map, std::string_view key);
/// What a for loop takes: items of a list (a generator has none afterwards), keys of a map,
/// characters of a string, nothing of an undefined value. Throws TemplateError for others.
JinjaValue::List items_of(const JinjaValue& value);
std::int64_t length_of(const JinjaValue& value);

/// "str", "int", "dict"...
std::string_view type_name(const JinjaValue& value);

}  // namespace tessera
