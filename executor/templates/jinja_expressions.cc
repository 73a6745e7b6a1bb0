#include "executor/templates/jinja_expressions.h"

#include <cstdlib>
#include <utility>

namespace tessera {

void JinjaExpressions::fail(const std::string& what) const {
  throw TemplateError("line " + std::to_string(token().line) + ": " + what);
}

void JinjaExpressions::need_sign(std::string_view sign) {
  if (!take_sign(sign)) fail("'" + token().text + "' where '" + std::string(sign) + "' belongs");
}

std::string JinjaExpressions::need_name() {
  if (token().kind != TokenKind::name) fail("'" + token().text + "' where a name belongs");
  return tokens_[at_++].text;
}

void JinjaExpressions::need_end() const {
  if (!at_end()) fail("'" + token().text + "' where the tag should end");
}

JinjaExpressionPtr JinjaExpressions::tuple() {
  JinjaExpressionPtr first = condition();
  if (!is_sign(",")) return first;
  auto list = make(Expression::Kind::list);
  list->tuple = true;
  list->parts.push_back(std::move(first));
  while (take_sign(",")) {
    if (at_end() || is_sign(")")) break;
    list->parts.push_back(condition());
  }
  return list;
}

JinjaExpressionPtr JinjaExpressions::condition() {
  JinjaExpressionPtr value = disjunction();
  while (take_name("if")) {
    auto choice = make(Expression::Kind::condition);
    choice->parts.push_back(std::move(value));
    choice->parts.push_back(disjunction());
    choice->parts.push_back(take_name("else") ? condition() : nullptr);
    value = std::move(choice);
  }
  return value;
}

JinjaExpressionPtr JinjaExpressions::disjunction() {
  return left_to_right({"or"}, [&] { return left_to_right({"and"}, [&] { return negation(); }); });
}

JinjaExpressionPtr JinjaExpressions::make(JinjaExpression::Kind kind, std::string text) const {
  auto made = std::make_unique<Expression>();
  made->kind = kind;
  made->line = token().line;
  made->text = std::move(text);
  return made;
}

JinjaExpressionPtr JinjaExpressions::binary(std::string sign, JinjaExpressionPtr left,
                                            JinjaExpressionPtr right) {
  auto made = make(Expression::Kind::binary, std::move(sign));
  made->parts.push_back(std::move(left));
  made->parts.push_back(std::move(right));
  return made;
}

JinjaExpressionPtr JinjaExpressions::negation() {
  if (!is_name("not")) return comparison();
  auto made = make(Expression::Kind::unary, "not");
  ++at_;
  made->parts.push_back(negation());
  return made;
}

JinjaExpressionPtr JinjaExpressions::comparison() {
  JinjaExpressionPtr left = sum();
  int compared = 0;
  while (true) {
    std::string sign;
    for (const char* each : {"==", "!=", "<", "<=", ">", ">="}) {
      if (is_sign(each)) sign = each;
    }
    if (is_name("in")) sign = "in";
    if (is_name("not") && tokens_[at_ + 1].text == "in") sign = "not in";
    if (sign.empty()) return left;
    if (++compared > 1) fail("a chain of comparisons");
    at_ += sign == "not in" ? 2 : 1;
    left = binary(sign, std::move(left), sum());
  }
}

JinjaExpressionPtr JinjaExpressions::sum() {
  return left_to_right({"+", "-"}, [&] {
    return left_to_right({"~"}, [&] {
      return left_to_right({"*", "/", "//", "%"}, [&] { return unary(true); });
    });
  });
}

JinjaExpressionPtr JinjaExpressions::unary(bool with_filters) {
  JinjaExpressionPtr value;
  if (is_sign("-") || is_sign("+")) {
    value = make(Expression::Kind::unary, token().text);
    ++at_;
    value->parts.push_back(unary(false));
  } else {
    value = primary();
  }
  value = postfix(std::move(value));
  if (is_sign("**")) {
    ++at_;
    value = binary("**", std::move(value), unary(false));
  }
  return with_filters ? filters_and_tests(std::move(value)) : std::move(value);
}

JinjaExpressionPtr JinjaExpressions::primary() {
  const JinjaToken& first = token();
  auto made = make(Expression::Kind::literal);
  switch (first.kind) {
    case TokenKind::string:
      ++at_;
      made->literal = jinja_of(first.text);
      while (token().kind == TokenKind::string) made->literal.text += tokens_[at_++].text;
      return made;
    case TokenKind::integer:
      ++at_;
      made->literal =
          jinja_of(static_cast<std::int64_t>(std::strtoll(first.text.c_str(), nullptr, 10)));
      return made;
    case TokenKind::number:
      ++at_;
      made->literal = jinja_of(std::strtod(first.text.c_str(), nullptr));
      return made;
    case TokenKind::name:
      return name();
    case TokenKind::sign:
      return bracketed();
    case TokenKind::end:
      fail("nothing where a value belongs");
  }
  return made;
}

JinjaExpressionPtr JinjaExpressions::name() {
  const std::string text = need_name();
  auto made = make(Expression::Kind::literal);
  if (text == "true" || text == "True") {
    made->literal = jinja_of(true);
  } else if (text == "false" || text == "False") {
    made->literal = jinja_of(false);
  } else if (text == "none" || text == "None") {
    made->literal = jinja_none();
  } else {
    made->kind = Expression::Kind::name;
    made->text = text;
  }
  return made;
}

JinjaExpressionPtr JinjaExpressions::bracketed() {
  if (take_sign("(")) {
    if (take_sign(")")) {
      auto none = make(Expression::Kind::list);
      none->tuple = true;
      return none;
    }
    JinjaExpressionPtr inner = tuple();
    need_sign(")");
    return inner;
  }
  const bool map = is_sign("{");
  if (!map && !is_sign("[")) fail("'" + token().text + "' where a value belongs");
  auto made = make(map ? Expression::Kind::map : Expression::Kind::list);
  const char* end = map ? "}" : "]";
  ++at_;
  while (!take_sign(end)) {
    made->parts.push_back(condition());
    if (map) {
      need_sign(":");
      made->parts.push_back(condition());
    }
    if (!is_sign(end)) need_sign(",");
  }
  return made;
}

JinjaExpressionPtr JinjaExpressions::postfix(JinjaExpressionPtr value) {
  while (true) {
    if (take_sign(".")) {
      auto made = make(Expression::Kind::attribute);
      if (token().kind == TokenKind::integer) {  // items.0
        made->kind = Expression::Kind::item;
        made->parts.push_back(std::move(value));
        made->parts.push_back(primary());
      } else {
        made->text = need_name();
        made->parts.push_back(std::move(value));
      }
      value = std::move(made);
    } else if (take_sign("[")) {
      value = subscript(std::move(value));
    } else if (take_sign("(")) {
      auto made = make(Expression::Kind::call);
      made->parts.push_back(std::move(value));
      arguments(*made);
      value = std::move(made);
    } else {
      return value;
    }
  }
}

JinjaExpressionPtr JinjaExpressions::subscript(JinjaExpressionPtr value) {
  auto made = make(Expression::Kind::item);
  made->parts.push_back(std::move(value));
  const auto bound = [&] {
    made->parts.push_back(is_sign(":") || is_sign("]") ? nullptr : condition());
  };
  bound();
  while (take_sign(":")) {
    made->kind = Expression::Kind::slice;
    bound();
  }
  need_sign("]");
  if (made->kind == Expression::Kind::item && made->parts[1] == nullptr) fail("an empty []");
  made->parts.resize(made->kind == Expression::Kind::slice ? 4 : 2);
  return made;
}

void JinjaExpressions::arguments(Expression& call) {
  while (!take_sign(")")) {
    const bool named = token().kind == TokenKind::name && tokens_[at_ + 1].text == "=" &&
                       tokens_[at_ + 1].kind == TokenKind::sign;
    if (is_sign("*") || is_sign("**")) fail("arguments with '" + token().text + "'");
    if (named) {
      std::string name = need_name();
      need_sign("=");
      call.named.emplace_back(std::move(name), condition());
    } else {
      call.parts.push_back(condition());
    }
    if (!is_sign(")")) need_sign(",");
  }
}

JinjaExpressionPtr JinjaExpressions::filters_and_tests(JinjaExpressionPtr value) {
  while (true) {
    if (take_sign("|")) {
      value = filter(std::move(value));
    } else if (take_name("is")) {
      value = test(std::move(value));
    } else {
      return value;
    }
  }
}

JinjaExpressionPtr JinjaExpressions::filter(JinjaExpressionPtr value) {
  const std::string text = need_name();
  auto made = make(Expression::Kind::filter, text);
  made->parts.push_back(std::move(value));
  if (take_sign("(")) arguments(*made);
  return made;
}

JinjaExpressionPtr JinjaExpressions::test(JinjaExpressionPtr value) {
  const bool negated = take_name("not");
  const std::string text = need_name();
  auto made = make(Expression::Kind::test, text);
  made->parts.push_back(std::move(value));
  if (take_sign("(")) {
    arguments(*made);
  } else if (takes_bare_argument()) {
    made->parts.push_back(postfix(primary()));
  }
  if (!negated) return made;
  auto negation = make(Expression::Kind::unary, "not");
  negation->parts.push_back(std::move(made));
  return negation;
}

bool JinjaExpressions::takes_bare_argument() const {
  const JinjaToken& next = token();
  if (next.kind == TokenKind::sign) return next.text == "[" || next.text == "{";
  if (next.kind != TokenKind::name) return next.kind != TokenKind::end;
  for (const char* word : {"and", "or", "else", "if", "is", "in", "not"}) {
    if (next.text == word) return false;
  }
  return true;
}

}  // namespace tessera
