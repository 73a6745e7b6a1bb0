// Text as it is written: what printf writes, whole numbers in a row as ranges, letters in lower
// case. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tessera {

/// What printf would write, however long it is.
[[gnu::format(printf, 1, 2)]] std::string printed(const char* format, ...);

/// Ascending numbers as "0-3, 6".
std::string ranges_text(std::span<const int> ascending);

/// Letters of ASCII in lower case, all else as it is, whatever the locale.
std::string lower_case(std::string_view text);

}  // namespace tessera
