// Integer arithmetic of a shell's $((...)).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

/// The text of a variable; nullopt = not known.
using ShellLookup = std::function<std::optional<std::string>(const std::string& name)>;

/// + - * / %, comparisons, ?: and parentheses over numbers and variables, whose texts are
/// expressions again. nullopt where the text is none of that, a variable is not known, or a number
/// leaves 64 bits.
std::optional<std::int64_t> shell_arithmetic(std::string_view text, const ShellLookup& lookup);

}  // namespace tessera
