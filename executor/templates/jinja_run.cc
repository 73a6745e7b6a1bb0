#include <algorithm>
#include <ctime>
#include <map>
#include <optional>

#include "executor/templates/jinja_functions.h"
#include "executor/templates/jinja_syntax.h"

namespace tessera {
namespace {

using Expression = JinjaExpression;
using Statement = JinjaStatement;
using Value = JinjaValue;
using Kind = JinjaValue::Kind;
using Sequence = JinjaValue::Sequence;

constexpr int kDeepest = 100;  // macro calls
constexpr std::int64_t kLongestRange = 100'000;
/// The last three are defined, and nothing else: a call is refused by name.
constexpr std::string_view kFunctions[] = {
    "raise_exception", "namespace", "range", "strftime_now", "dict", "lipsum", "cycler", "joiner"};

enum class Flow { on, stop, skip };  // of a loop

class Run {
 public:
  explicit Run(const Value::Map& variables) : scopes_(1) {
    for (const auto& [name, value] : variables) scopes_[0][name] = value;
  }

  std::string text(const JinjaBody& body) {
    run(body);
    return std::move(out_);
  }

 private:
  using Scope = std::map<std::string, Value, std::less<>>;

  Flow run(const JinjaBody& body) {
    for (const auto& statement : body) {
      const Flow flow = run(*statement);
      if (flow != Flow::on) return flow;
    }
    return Flow::on;
  }

  Flow run(const Statement& s) {
    switch (s.kind) {
      case Statement::Kind::text:
        out_ += s.text;
        break;
      case Statement::Kind::output:
        out_ += text_of(value(*s.expression));
        break;
      case Statement::Kind::condition:
        return run(is_true(value(*s.expression)) ? s.body : s.other);
      case Statement::Kind::loop:
        return loop(s);
      case Statement::Kind::assign:
        assign(s);
        break;
      case Statement::Kind::assign_body:
        scopes_.back()[s.names[0]] = jinja_of(written(s.body));
        break;
      case Statement::Kind::macro: {
        Value macro;
        macro.kind = Kind::macro;
        macro.macro = &s;
        scopes_.back()[s.names[0]] = std::move(macro);
        break;
      }
      case Statement::Kind::body:
        return run(s.body);
      case Statement::Kind::stop:
        return Flow::stop;
      case Statement::Kind::skip:
        return Flow::skip;
    }
    return Flow::on;
  }

  std::string written(const JinjaBody& body) {
    std::string before = std::exchange(out_, {});
    run(body);
    return std::exchange(out_, std::move(before));
  }

  void bind(const std::vector<std::string>& names, const Value& item) {
    if (names.size() == 1) {
      scopes_.back()[names[0]] = item;
      return;
    }
    const Value::List parts = items_of(item);
    if (parts.size() != names.size()) throw TemplateError("values for other than so many names");
    for (std::size_t i = 0; i < names.size(); ++i) scopes_.back()[names[i]] = parts[i];
  }

  void assign(const Statement& s) {
    const Value given = value(*s.expression);
    if (s.member.empty()) return bind(s.names, given);
    const Value space = variable(s.names[0]);
    if (!space.is(Kind::space)) throw TemplateError("'" + s.names[0] + "' is no namespace");
    for (auto& [name, old] : *space.map) {
      if (name == s.member) {
        old = given;
        return;
      }
    }
    space.map->emplace_back(s.member, given);
  }

  Flow loop(const Statement& s) {
    Value::List items;
    for (Value& item : items_of(value(*s.expression))) {
      if (s.filter != nullptr) {
        scopes_.emplace_back();
        bind(s.names, item);
        const bool passes = is_true(value(*s.filter));
        scopes_.pop_back();
        if (!passes) continue;
      }
      items.push_back(std::move(item));
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
      scopes_.emplace_back();
      bind(s.names, items[i]);
      scopes_.back()["loop"] = loop_variable(items, i);
      const Flow flow = run(s.body);
      scopes_.pop_back();
      if (flow == Flow::stop) break;
    }
    return items.empty() ? run(s.other) : Flow::on;
  }

  static Value loop_variable(const Value::List& items, std::size_t at) {
    const auto i = static_cast<std::int64_t>(at), n = static_cast<std::int64_t>(items.size());
    Value::Map loop{{"index", jinja_of(i + 1)},
                    {"index0", jinja_of(i)},
                    {"first", jinja_of(i == 0)},
                    {"last", jinja_of(i + 1 == n)},
                    {"length", jinja_of(n)},
                    {"revindex", jinja_of(n - i)},
                    {"revindex0", jinja_of(n - i - 1)},
                    {"depth", jinja_of(std::int64_t{1})},
                    {"depth0", jinja_of(std::int64_t{0})}};  // recursive loops are refused
    if (i > 0) loop.emplace_back("previtem", items[at - 1]);
    if (i + 1 < n) loop.emplace_back("nextitem", items[at + 1]);
    return jinja_of(std::move(loop));
  }

  Value variable(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto found = scope->find(name); found != scope->end()) return found->second;
    }
    if (std::ranges::find(kFunctions, name) == std::end(kFunctions)) return jinja_undefined(name);
    Value function;
    function.kind = Kind::macro;
    function.text = name;
    return function;
  }

  Value value(const Expression& e) {
    try {
      return computed(e);
    } catch (const TemplateError& error) {
      if (std::string_view(error.what()).starts_with("line ")) throw;
      throw TemplateError("line " + std::to_string(e.line) + ": " + error.what());
    }
  }

  Value computed(const Expression& e) {
    switch (e.kind) {
      case Expression::Kind::literal:
        return e.literal;
      case Expression::Kind::name:
        return variable(e.text);
      case Expression::Kind::list: {
        Value::List items;
        for (const auto& part : e.parts) items.push_back(value(*part));
        return jinja_of(std::move(items), e.tuple ? Sequence::tuple : Sequence::list);
      }
      case Expression::Kind::map: {
        Value::Map members;
        for (std::size_t i = 0; i < e.parts.size(); i += 2) {
          const Value key = value(*e.parts[i]);
          if (!key.is(Kind::string)) throw TemplateError("a key that is no text");
          members.emplace_back(key.text, value(*e.parts[i + 1]));
        }
        return jinja_of(std::move(members));
      }
      case Expression::Kind::attribute:
        return item_of(value(*e.parts[0]), jinja_of(e.text));
      case Expression::Kind::item:
        return item_of(value(*e.parts[0]), value(*e.parts[1]));
      case Expression::Kind::slice:
        return slice(e);
      case Expression::Kind::call:
        return call(e);
      case Expression::Kind::filter:
        return apply_filter(e.text, value(*e.parts[0]), arguments(e));
      case Expression::Kind::test:
        return jinja_of(apply_test(e.text, value(*e.parts[0]), arguments(e)));
      case Expression::Kind::unary:
        return unary(e);
      case Expression::Kind::binary:
        return binary(e);
      case Expression::Kind::condition:
        if (is_true(value(*e.parts[1]))) return value(*e.parts[0]);
        return e.parts[2] == nullptr ? jinja_undefined("an else") : value(*e.parts[2]);
    }
    return {};
  }

  JinjaArguments arguments(const Expression& e) {
    JinjaArguments given;
    for (std::size_t i = 1; i < e.parts.size(); ++i) given.values.push_back(value(*e.parts[i]));
    for (const auto& [name, part] : e.named) given.named.emplace_back(name, value(*part));
    return given;
  }

  Value slice(const Expression& e) {
    const Value subject = value(*e.parts[0]);
    if (subject.is(Kind::list) && !subject.is(Sequence::list) && !subject.is(Sequence::tuple)) {
      throw TemplateError("a slice of a " + std::string(type_name(subject)));
    }
    const Value::List items = items_of(subject);
    const auto n = static_cast<std::int64_t>(items.size());
    const auto bound = [&](std::size_t i) -> std::optional<std::int64_t> {
      if (e.parts[i] == nullptr) return std::nullopt;
      const Value given = value(*e.parts[i]);
      if (given.is(Kind::none)) return std::nullopt;
      return given.as_integer();
    };
    const std::int64_t step = bound(3).value_or(1);
    if (step == 0) throw TemplateError("a slice of step 0");
    const auto placed = [&](std::optional<std::int64_t> given, std::int64_t otherwise) {
      if (!given) return otherwise;
      const std::int64_t at = *given + (*given < 0 ? n : 0);
      return std::clamp<std::int64_t>(at, step > 0 ? 0 : -1, step > 0 ? n : n - 1);
    };
    const std::int64_t from = placed(bound(1), step > 0 ? 0 : n - 1);
    const std::int64_t to = placed(bound(2), step > 0 ? n : -1);
    Value::List chosen;
    for (std::int64_t i = from; step > 0 ? i < to : i > to; i += step) {
      chosen.push_back(items[static_cast<std::size_t>(i)]);
    }
    if (!subject.is(Kind::string)) return jinja_of(std::move(chosen), subject.sequence);
    std::string text;
    for (const Value& item : chosen) text += item.text;
    return jinja_of(std::move(text));
  }

  Value call(const Expression& e) {
    const Expression& callee = *e.parts[0];
    if (callee.kind == Expression::Kind::attribute) {
      const Value subject = value(*callee.parts[0]);
      const bool own = subject.is(Kind::map) || subject.is(Kind::space);
      const Value* macro = own ? member(subject, callee.text) : nullptr;
      if (macro == nullptr || !macro->is(Kind::macro)) {
        return call_method(callee.text, subject, arguments(e));
      }
    }
    const Value function = value(callee);
    if (function.is(Kind::undefined)) throw TemplateError("'" + function.text + "' is undefined");
    if (!function.is(Kind::macro)) {
      throw TemplateError("a call of " + std::string(type_name(function)));
    }
    const JinjaArguments given = arguments(e);
    return function.macro == nullptr ? built_in(function.text, given)
                                     : call_macro(*function.macro, given);
  }

  static Value built_in(const std::string& name, const JinjaArguments& given) {
    if (name == "raise_exception") {
      throw TemplateError(given.values.empty() ? "raise_exception()" : text_of(given.values[0]));
    }
    if (name == "namespace" || name == "dict") {
      Value made = jinja_of(members_of(name, given));
      if (name == "namespace") made.kind = Kind::space;
      return made;
    }
    if (name == "strftime_now") return now(given);
    if (name == "range") return range(given);
    throw TemplateError("the function '" + name + "'");
  }

  static Value range(const JinjaArguments& given) {
    std::int64_t from = 0, to = 0, step = 1;
    const auto at = [&](std::size_t i) { return given.values.at(i).as_integer(); };
    if (given.values.empty() || given.values.size() > 3) throw TemplateError("range of nothing");
    to = at(given.values.size() == 1 ? 0 : 1);
    if (given.values.size() > 1) from = at(0);
    if (given.values.size() > 2) step = at(2);
    if (step == 0) throw TemplateError("range of step 0");
    Value::List items;
    for (std::int64_t i = from; step > 0 ? i < to : i > to; i += step) {
      if (static_cast<std::int64_t>(items.size()) == kLongestRange)
        throw TemplateError("a range that long");
      items.push_back(jinja_of(i));
    }
    Value made = jinja_of(std::move(items), Sequence::range);
    made.text = "range(" + std::to_string(from) + ", " + std::to_string(to) +
                (step == 1 ? "" : ", " + std::to_string(step)) + ")";
    return made;
  }

  /// Of dict() and namespace(): those of a map, then the named ones in its place.
  static Value::Map members_of(const std::string& name, const JinjaArguments& given) {
    Value::Map members;
    if (!given.values.empty()) {
      const bool map = given.values.size() == 1 && given.values[0].is(Kind::map);
      if (!map) throw TemplateError(name + "() of other than one map and names");
      members = *given.values[0].map;
    }
    for (const auto& [key, value] : given.named) {
      const auto known = std::ranges::find(members, key, &Value::Map::value_type::first);
      if (known == members.end()) {
        members.emplace_back(key, value);
      } else {
        known->second = value;
      }
    }
    return members;
  }

  static Value now(const JinjaArguments& given) {
    const std::string format = given.values.empty() ? "" : text_of(given.values[0]);
    const std::time_t seconds = std::time(nullptr);
    std::tm local{};
    ::localtime_r(&seconds, &local);
    char buffer[256];
    const std::size_t count = std::strftime(buffer, sizeof buffer, format.c_str(), &local);
    return jinja_of(std::string(buffer, count));
  }

  /// A macro sees its parameters and the template's own variables.
  Value call_macro(const Statement& macro, const JinjaArguments& given) {
    if (++depth_ > kDeepest) throw TemplateError("macros call one another too deeply");
    if (given.values.size() > macro.parameters.size()) throw TemplateError("too many arguments");
    Scope own;
    for (std::size_t i = 0; i < macro.parameters.size(); ++i) {
      const auto& [name, preset] = macro.parameters[i];
      const Value* stated = given.find(i, name);
      own[name] = stated != nullptr   ? *stated
                  : preset != nullptr ? value(*preset)
                                      : jinja_undefined(name);
    }
    std::vector<Scope> outer = std::exchange(scopes_, {});
    scopes_.push_back(std::move(outer[0]));
    scopes_.push_back(std::move(own));
    Value text = jinja_of(written(macro.body));
    outer[0] = std::move(scopes_[0]);
    scopes_ = std::move(outer);
    --depth_;
    return text;
  }

  Value unary(const Expression& e) {
    const Value operand = value(*e.parts[0]);
    if (e.text == "not") return jinja_of(!is_true(operand));
    if (!operand.is_number()) {
      throw TemplateError("'" + e.text + "' of " + std::string(type_name(operand)));
    }
    const int sign = e.text == "-" ? -1 : 1;
    return operand.is(Kind::number) ? jinja_of(sign * operand.number)
                                    : jinja_of(sign * operand.as_integer());
  }

  Value binary(const Expression& e) {
    const Value left = value(*e.parts[0]);
    if (e.text == "and") return is_true(left) ? value(*e.parts[1]) : left;
    if (e.text == "or") return is_true(left) ? left : value(*e.parts[1]);
    const Value right = value(*e.parts[1]);
    if (e.text == "~") return jinja_of(text_of(left) + text_of(right));
    if (e.text == "==") return jinja_of(equal(left, right));
    if (e.text == "!=") return jinja_of(!equal(left, right));
    if (e.text == "in") return jinja_of(contains(right, left));
    if (e.text == "not in") return jinja_of(!contains(right, left));
    if (e.text == "<") return jinja_of(compared(left, right) < 0);
    if (e.text == "<=") return jinja_of(compared(left, right) <= 0);
    if (e.text == ">") return jinja_of(compared(left, right) > 0);
    if (e.text == ">=") return jinja_of(compared(left, right) >= 0);
    return jinja_arithmetic(e.text, left, right);
  }

  std::vector<Scope> scopes_;
  std::string out_;
  int depth_ = 0;
};

}  // namespace

std::string run_jinja(const JinjaBody& body, const Value::Map& variables) {
  return Run(variables).text(body);
}

}  // namespace tessera
