// Amounts as reports and reasons print them.
#pragma once

#include <string>

#include "cost_models/spec/units.h"

namespace tessera {

/// "12.34 GiB".
std::string in_gib(Bytes bytes, int decimals = 2);
/// 0.125 as "12.5 %".
std::string percent(double share);

}  // namespace tessera
