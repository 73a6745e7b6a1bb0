// Which columns of a sweep's table are read, and which only look as if they were.
//
// A misspelt column would be kept in silence and its values never priced. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tessera {

/// The column of `known` that `name`, none of them, was probably meant to be: the same words
/// without `_`, `-`, case, number, `num` before or `size`, `degree` or `stage` behind them; one
/// letter off in five, two in eight.
std::optional<std::string> resembled_column(std::string_view name,
                                            std::span<const std::string> known);

}  // namespace tessera
