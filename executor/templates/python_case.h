// Upper and lower case as Python's str has it: of one character sometimes several, and a sigma's by
// what stands around it.
//
// Pure functions, any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tessera {

/// A letter with case, after which a word of str.title goes on.
bool is_cased(char32_t character);

/// str.lower of one character of a text.
std::u32string lower_case(std::u32string_view text, std::size_t at);

/// str.upper of one character, or str.title.
std::u32string upper_case(char32_t character, bool title);

}  // namespace tessera
