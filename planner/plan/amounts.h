// Amounts as reports and reasons print them.
#pragma once

#include <string>

#include "cost_models/spec/units.h"

namespace tessera {

/// "12.34 GiB".
std::string in_gib(Bytes bytes, int decimals = 2);
/// In GiB, MiB or KiB, by its size: "12.34 MiB".
std::string in_binary_units(Bytes bytes);
/// In s, ms or us, by its size: "12.34 ms".
std::string in_seconds(Seconds seconds);
/// 0.125 as "12.5 %".
std::string percent(double share);

}  // namespace tessera
