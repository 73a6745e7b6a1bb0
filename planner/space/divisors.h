// Divisors of a number: degrees that deal GPUs, layers or experts evenly.
//
// Pure.
#pragma once

#include <vector>

namespace tessera {

/// Those of a positive number, ascending, 1 and the number among them.
std::vector<int> divisors(int number);

}  // namespace tessera
