// Amounts as reports and reasons print them.
#pragma once

#include <cstdint>
#include <string>

namespace tessera {

/// "12.34 GiB".
std::string in_gib(std::int64_t bytes, int decimals = 2);
/// 0.125 as "12.5 %".
std::string percent(double share);

}  // namespace tessera
