// What filters and methods of text have in common: Python's str.
//
// Pure functions; they throw TemplateError.
#pragma once

#include <string>

#include "executor/templates/jinja_functions.h"

namespace tessera {

/// The text of a string; throws for other values, naming `what` was wanted of it.
const std::string& string_of(const JinjaValue& value, const char* what);

/// str.strip and its kin: white space, or the characters of `set`.
std::string stripped_text(const std::string& text, const JinjaValue* set, bool left, bool right);

enum class JinjaCase { upper, lower, title, capital };
std::string in_case(const std::string& text, JinjaCase wanted);

/// str.replace(old, new).
std::string replaced_text(const std::string& text, const JinjaArguments& given);

/// str.join, and the filter join(d, attribute).
JinjaValue joined(const JinjaValue& items, const std::string& between,
                  const JinjaValue* attribute = nullptr);

/// A member by a path with dots, as map(attribute=) takes it.
JinjaValue member_at(JinjaValue value, const std::string& path);

}  // namespace tessera
