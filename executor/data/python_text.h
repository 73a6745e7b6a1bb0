// Text as Python's str has it: code points, and the few operations of str and re that reward
// functions and chat templates are written with. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// Code points of UTF-8; malformed bytes become U+FFFD.
std::u32string code_points(std::string_view text);

/// UTF-8 of code points.
std::string utf8_of(std::u32string_view text);

/// str.replace: every occurrence from the left, none overlapping. Precondition: `from` not empty.
std::u32string replaced(std::u32string_view text, std::u32string_view from, std::u32string_view to);

/// str.split by a separator: one more part than there are separators.
std::vector<std::u32string> split_at(std::u32string_view text, std::u32string_view separator);

/// str.isspace of one character, which is also what \s matches.
bool is_python_space(char32_t character);
/// str.isdigit of one character: decimals of any script, superscripts, circled digits.
bool is_python_digit(char32_t character);

/// The value of a decimal digit of any script, or -1.
int decimal_value(char32_t character);

/// str.strip().
std::u32string_view stripped(std::u32string_view text);

/// text[-count:].
std::u32string_view last_characters(std::u32string_view text, std::size_t count);

}  // namespace tessera
