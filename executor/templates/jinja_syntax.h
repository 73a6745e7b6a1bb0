// The syntax of Jinja templates as chat templates use it: expressions and statements.
//
// Plain trees, read once (jinja_parser.cc) and run any number of times (jinja_run.cc).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executor/templates/jinja_value.h"

namespace tessera {

struct JinjaExpression {
  enum class Kind : std::uint8_t {
    literal,
    name,       // text
    list,       // parts
    map,        // parts: key, value, key, value...
    attribute,  // parts[0].text
    item,       // parts[0][parts[1]]
    slice,      // parts[0][parts[1]:parts[2]:parts[3]]; parts may be null
    call,       // parts[0](parts[1]..., named)
    filter,     // parts[0] | text(parts[1]..., named)
    test,       // parts[0] is text(parts[1]...)
    unary,      // text: "not", "-", "+"
    binary,     // parts[0] text parts[1]; "and" and "or" look at the second where they must
    condition   // parts[0] if parts[1] else parts[2] (null: undefined)
  };
  Kind kind = Kind::literal;
  int line = 0;
  bool tuple = false;  // of a list: in round brackets, or in none
  std::string text;
  JinjaValue literal;
  std::vector<std::unique_ptr<JinjaExpression>> parts;
  std::vector<std::pair<std::string, std::unique_ptr<JinjaExpression>>> named;
};
using JinjaExpressionPtr = std::unique_ptr<JinjaExpression>;

struct JinjaStatement {
  enum class Kind : std::uint8_t {
    text,
    output,       // expression
    condition,    // if expression: body, else: other
    loop,         // for names in expression if filter: body, else: other
    assign,       // names = expression, or names[0].member = expression
    assign_body,  // names[0] = what body writes
    macro,        // names[0](parameters): body
    body,         // body: {% generation %}
    stop,         // {% break %}
    skip          // {% continue %}
  };
  Kind kind = Kind::text;
  int line = 0;
  std::string text;
  std::vector<std::string> names;
  std::string member;
  JinjaExpressionPtr expression, filter;
  std::vector<std::unique_ptr<JinjaStatement>> body, other;
  std::vector<std::pair<std::string, JinjaExpressionPtr>> parameters;  // with defaults, or null
};
using JinjaBody = std::vector<std::unique_ptr<JinjaStatement>>;

/// Reads a template with trim_blocks and lstrip_blocks, as transformers sets them. Throws
/// TemplateError, which names the line and the construct that is not known.
JinjaBody parse_jinja(std::string_view source);

/// What the template writes with these variables. Throws TemplateError.
std::string run_jinja(const JinjaBody& body, const JinjaValue::Map& variables);

}  // namespace tessera
