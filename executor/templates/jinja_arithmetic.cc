// What + - * / // % and ** make of two values.
#include <algorithm>
#include <cmath>

#include "executor/templates/jinja_functions.h"

namespace tessera {
namespace {

using Value = JinjaValue;
using Kind = JinjaValue::Kind;

constexpr std::int64_t kMostCopies = 100'000;  // of a text

// Python's have no bound.
constexpr const char* kBeyond = "an integer beyond 64 bits";

Value whole_power(std::int64_t base, std::int64_t exponent) {
  std::int64_t power = 1;
  for (std::int64_t i = 0; i < exponent; ++i) {
    if (__builtin_mul_overflow(power, base, &power)) throw TemplateError(kBeyond);
    if (power == 0 || (power == 1 && base == 1)) break;
    if (base == -1) return jinja_of(exponent % 2 == 0 ? std::int64_t{1} : std::int64_t{-1});
  }
  return jinja_of(power);
}

Value of_numbers(const std::string& sign, const Value& a, const Value& b) {
  const double x = a.as_double(), y = b.as_double();
  if ((sign == "/" || sign == "//" || sign == "%") && y == 0)
    throw TemplateError("division by zero");
  if (sign == "/") return jinja_of(x / y);
  if (a.is(Kind::number) || b.is(Kind::number) || sign == "**") {
    const double result = sign == "+"    ? x + y
                          : sign == "-"  ? x - y
                          : sign == "*"  ? x * y
                          : sign == "//" ? std::floor(x / y)
                          : sign == "%"  ? x - y * std::floor(x / y)
                                         : std::pow(x, y);
    const bool whole = !a.is(Kind::number) && !b.is(Kind::number) && y >= 0;
    return whole ? whole_power(a.as_integer(), b.as_integer()) : jinja_of(result);
  }
  const std::int64_t i = a.as_integer(), j = b.as_integer();
  std::int64_t result = 0;
  const bool beyond = sign == "+"   ? __builtin_add_overflow(i, j, &result)
                      : sign == "-" ? __builtin_sub_overflow(i, j, &result)
                      : sign == "*" ? __builtin_mul_overflow(i, j, &result)
                                    : false;
  if (beyond) throw TemplateError(kBeyond);
  if (sign == "+" || sign == "-" || sign == "*") return jinja_of(result);
  const std::int64_t rest = i % j,
                     floor_rest = rest != 0 && (rest < 0) != (j < 0) ? rest + j : rest;
  return sign == "%" ? jinja_of(floor_rest) : jinja_of((i - floor_rest) / j);
}

}  // namespace

JinjaValue jinja_arithmetic(const std::string& sign, const Value& a, const Value& b) {
  for (const Value* each : {&a, &b}) {
    if (each->is(Kind::undefined)) throw TemplateError("'" + each->text + "' is undefined");
  }
  if (sign == "+" && a.is(Kind::string) && b.is(Kind::string)) return jinja_of(a.text + b.text);
  using Sequence = Value::Sequence;
  const bool added = a.is(Sequence::list) || a.is(Sequence::tuple);
  if (sign == "+" && added && b.is(a.sequence)) {
    Value::List items = *a.list;
    items.insert(items.end(), b.list->begin(), b.list->end());
    return jinja_of(std::move(items), a.sequence);
  }
  if (sign == "*" && a.is(Kind::string) && b.is(Kind::integer)) {
    std::string text;
    for (std::int64_t i = 0; i < std::min(b.integer, kMostCopies); ++i) text += a.text;
    return jinja_of(std::move(text));
  }
  if (!a.is_number() || !b.is_number()) {
    throw TemplateError("'" + sign + "' of " + std::string(type_name(a)) + " and " +
                        std::string(type_name(b)));
  }
  return of_numbers(sign, a, b);
}

}  // namespace tessera
