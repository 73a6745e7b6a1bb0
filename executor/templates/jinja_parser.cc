#include <algorithm>
#include <initializer_list>

#include "executor/templates/jinja_expressions.h"

namespace tessera {
namespace {

using Statement = JinjaStatement;

/// Statements up to the tag that ends their block.
class TemplateParser {
 public:
  explicit TemplateParser(std::vector<JinjaPiece> pieces) : pieces_(std::move(pieces)) {}

  JinjaBody run() {
    JinjaBody body = block({});
    return body;
  }

 private:
  using Ends = std::initializer_list<std::string_view>;

  /// Reads until a tag that begins with one of `ends`, which is not taken.
  JinjaBody block(Ends ends) {
    JinjaBody body;
    while (at_ < pieces_.size()) {
      const JinjaPiece& piece = pieces_[at_];
      if (piece.kind == JinjaPiece::Kind::statement) {
        const std::string& word = piece.tokens[0].text;
        if (std::ranges::find(ends, word) != ends.end()) return body;
        body.push_back(statement());
        continue;
      }
      ++at_;
      auto made = make(Statement::Kind::text, piece.line);
      made->text = piece.text;
      if (piece.kind == JinjaPiece::Kind::output) {
        made->kind = Statement::Kind::output;
        JinjaExpressions parser(piece.tokens);
        made->expression = parser.tuple();
        parser.need_end();
      }
      body.push_back(std::move(made));
    }
    if (ends.size() != 0) {
      throw TemplateError("the end of the template where '" + std::string(*(ends.end() - 1)) +
                          "' belongs");
    }
    return body;
  }

  static std::unique_ptr<Statement> make(Statement::Kind kind, int line) {
    auto made = std::make_unique<Statement>();
    made->kind = kind;
    made->line = line;
    return made;
  }

  std::unique_ptr<Statement> statement() {
    const JinjaPiece& piece = pieces_[at_++];
    JinjaExpressions parser(piece.tokens);
    const std::string word = parser.need_name();
    if (word == "if") return condition(parser, piece.line);
    if (word == "for") return loop(parser, piece.line);
    if (word == "set") return assignment(parser, piece.line);
    if (word == "macro") return macro(parser, piece.line);
    if (word == "break" || word == "continue") {
      parser.need_end();
      return make(word == "break" ? Statement::Kind::stop : Statement::Kind::skip, piece.line);
    }
    if (word == "generation") {
      auto made = make(Statement::Kind::body, piece.line);
      made->body = block({"endgeneration"});
      ++at_;
      return made;
    }
    throw TemplateError("line " + std::to_string(piece.line) + ": the statement '" + word + "'");
  }

  std::unique_ptr<Statement> condition(JinjaExpressions& parser, int line) {
    auto made = make(Statement::Kind::condition, line);
    made->expression = parser.tuple();
    parser.need_end();
    made->body = block({"elif", "else", "endif"});
    const JinjaPiece& piece = pieces_[at_++];
    JinjaExpressions next(piece.tokens);
    const std::string word = next.need_name();
    if (word == "elif") {
      made->other.push_back(condition(next, piece.line));
    } else if (word == "else") {
      made->other = block({"endif"});
      ++at_;
    }
    return made;
  }

  std::unique_ptr<Statement> loop(JinjaExpressions& parser, int line) {
    auto made = make(Statement::Kind::loop, line);
    const bool bracket = parser.take_sign("(");
    made->names.push_back(parser.need_name());
    while (parser.take_sign(",")) made->names.push_back(parser.need_name());
    if (bracket) parser.need_sign(")");
    if (!parser.take_name("in")) parser.fail("a for without 'in'");
    made->expression = parser.disjunction();
    if (parser.take_name("if")) made->filter = parser.condition();
    if (parser.is_name("recursive")) parser.fail("a recursive for");
    parser.need_end();
    made->body = block({"else", "endfor"});
    if (pieces_[at_++].tokens[0].text == "else") {
      made->other = block({"endfor"});
      ++at_;
    }
    return made;
  }

  std::unique_ptr<Statement> assignment(JinjaExpressions& parser, int line) {
    auto made = make(Statement::Kind::assign, line);
    made->names.push_back(parser.need_name());
    if (parser.take_sign(".")) made->member = parser.need_name();
    while (parser.take_sign(",")) made->names.push_back(parser.need_name());
    if (parser.take_sign("=")) {
      made->expression = parser.tuple();
      parser.need_end();
      return made;
    }
    if (parser.is_sign("|")) parser.fail("a filter of a set block");
    parser.need_end();
    made->kind = Statement::Kind::assign_body;
    made->body = block({"endset"});
    ++at_;
    return made;
  }

  std::unique_ptr<Statement> macro(JinjaExpressions& parser, int line) {
    auto made = make(Statement::Kind::macro, line);
    made->names.push_back(parser.need_name());
    parser.need_sign("(");
    while (!parser.take_sign(")")) {
      std::string name = parser.need_name();
      JinjaExpressionPtr preset = parser.take_sign("=") ? parser.condition() : nullptr;
      made->parameters.emplace_back(std::move(name), std::move(preset));
      if (!parser.is_sign(")")) parser.need_sign(",");
    }
    parser.need_end();
    made->body = block({"endmacro"});
    ++at_;
    return made;
  }

  std::vector<JinjaPiece> pieces_;
  std::size_t at_ = 0;
};

}  // namespace

JinjaBody parse_jinja(std::string_view source) { return TemplateParser(lex_jinja(source)).run(); }

}  // namespace tessera
