// Jinja source cut into text and the tokens of its tags.
//
// Pure; throws TemplateError. Source of the rules of white space: Jinja 3.1, "Whitespace Control".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct JinjaToken {
  enum class Kind : std::uint8_t { name, string, integer, number, sign, end };
  Kind kind = Kind::end;
  std::string text;  // of a string without quotes and escapes
  int line = 0;
};

/// Text, {{ output }} or {% statement %}. Comments are left out.
struct JinjaPiece {
  enum class Kind : std::uint8_t { text, output, statement };
  Kind kind = Kind::text;
  int line = 0;
  std::string text;
  std::vector<JinjaToken> tokens;  // of a tag; the last one is `end`
};

/// With trim_blocks (the line end behind a statement goes) and lstrip_blocks (white space before a
/// statement on its line goes).
std::vector<JinjaPiece> lex_jinja(std::string_view source);

}  // namespace tessera
