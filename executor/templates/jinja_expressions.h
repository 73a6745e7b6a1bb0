// Expressions of one tag of a template, by precedence as Jinja has it.
//
// Takes tokens one after the other; throws TemplateError, which names the line. One owner, one
// thread; the tokens must outlive it.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "executor/templates/jinja_lexer.h"
#include "executor/templates/jinja_syntax.h"

namespace tessera {

class JinjaExpressions {
  using Expression = JinjaExpression;
  using TokenKind = JinjaToken::Kind;

 public:
  explicit JinjaExpressions(const std::vector<JinjaToken>& tokens) : tokens_(tokens) {}
  const JinjaToken& token() const { return tokens_[at_]; }
  [[noreturn]] void fail(const std::string& what) const;
  bool at_end() const { return token().kind == TokenKind::end; }
  bool is_sign(std::string_view sign) const {
    return token().kind == TokenKind::sign && token().text == sign;
  }
  bool is_name(std::string_view name) const {
    return token().kind == TokenKind::name && token().text == name;
  }
  bool take_sign(std::string_view sign) { return is_sign(sign) && (++at_, true); }
  bool take_name(std::string_view name) { return is_name(name) && (++at_, true); }
  void need_sign(std::string_view sign);
  std::string need_name();
  void need_end() const;
  /// An expression, or several with commas (a tuple).
  JinjaExpressionPtr tuple();
  JinjaExpressionPtr condition();
  /// What a for loop runs over: a condition behind it is its filter.
  JinjaExpressionPtr disjunction();

 private:
  JinjaExpressionPtr make(JinjaExpression::Kind kind, std::string text = {}) const;
  JinjaExpressionPtr binary(std::string sign, JinjaExpressionPtr left, JinjaExpressionPtr right);
  template <class Next>
  JinjaExpressionPtr left_to_right(std::initializer_list<std::string_view> signs,
                                   const Next& next) {
    JinjaExpressionPtr left = next();
    while (true) {
      const auto* sign = std::ranges::find(signs, token().text);
      const bool operates = token().kind == TokenKind::sign || token().kind == TokenKind::name;
      if (!operates || sign == signs.end()) return left;
      std::string text(*sign);
      ++at_;
      left = binary(std::move(text), std::move(left), next());
    }
  }
  JinjaExpressionPtr negation();
  JinjaExpressionPtr comparison();
  JinjaExpressionPtr sum();
  JinjaExpressionPtr unary(bool with_filters);
  JinjaExpressionPtr primary();
  JinjaExpressionPtr name();
  JinjaExpressionPtr bracketed();
  JinjaExpressionPtr postfix(JinjaExpressionPtr value);
  JinjaExpressionPtr subscript(JinjaExpressionPtr value);
  void arguments(Expression& call);
  JinjaExpressionPtr filters_and_tests(JinjaExpressionPtr value);
  JinjaExpressionPtr filter(JinjaExpressionPtr value);
  JinjaExpressionPtr test(JinjaExpressionPtr value);
  /// `x is divisibleby 3`: a value that follows at once.
  bool takes_bare_argument() const;

  const std::vector<JinjaToken>& tokens_;
  std::size_t at_ = 0;
};

}  // namespace tessera
