// Text of a user's file as a terminal may show it.
//
// A file that is quoted in a message must not move the cursor, change colours or retitle the window
// of whoever reads the message. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tessera {

enum class LineEnds { escaped, kept };

/// `text` with every control character (C0 but for tabs, DEL, C1, the bidirectional overrides of
/// Unicode) and every byte that is not UTF-8 written as \n, \x1b or \u202e.
std::string printable(std::string_view text, LineEnds line_ends = LineEnds::escaped);

/// Offset of the first control character other than a tab or `\n`, of the first byte that is not
/// UTF-8, or npos.
std::size_t find_control_character(std::string_view text, std::size_t from = 0);
bool has_control_characters(std::string_view text);

/// Length of the UTF-8 sequence at `offset`, or 0 when it is malformed (RFC 3629, table 3-7 of
/// Unicode: no overlong forms, no surrogates, nothing above U+10FFFF).
std::size_t utf8_length(std::string_view text, std::size_t offset);

}  // namespace tessera
