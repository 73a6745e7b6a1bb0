// The filters, tests and methods of Jinja that chat templates use, by name.
//
// Pure functions; they throw TemplateError. Source of the semantics: Jinja 3.1 filters.py and
// tests.py, Python's str and dict.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/templates/jinja_value.h"

namespace tessera {

/// What a filter, test or method is given beside its subject.
struct JinjaArguments {
  std::vector<JinjaValue> values;
  std::vector<std::pair<std::string, JinjaValue>> named;

  /// The i-th argument or the one of that name; nullptr when it is not given.
  const JinjaValue* find(std::size_t i, std::string_view name) const;
};

/// Filters and tests that there are not throw as well.
JinjaValue apply_filter(std::string_view name, const JinjaValue& subject,
                        const JinjaArguments& arguments);
bool apply_test(std::string_view name, const JinjaValue& subject, const JinjaArguments& arguments);
/// subject.name(arguments). Throws TemplateError for a method that there is not.
JinjaValue call_method(std::string_view name, const JinjaValue& subject,
                       const JinjaArguments& arguments);

/// subject[key] and subject.key: undefined where there is none. Throws for undefined subjects.
JinjaValue item_of(const JinjaValue& subject, const JinjaValue& key);
/// a sign b, of + - * / // % **.
JinjaValue jinja_arithmetic(const std::string& sign, const JinjaValue& a, const JinjaValue& b);

/// `part in whole`.
bool contains(const JinjaValue& whole, const JinjaValue& part);

}  // namespace tessera
