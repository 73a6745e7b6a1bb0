// The list that readers append an input's Problems to, for headers that only name it.
//
// Whoever makes a list or reads what is in it includes problem.h, which says what a Problem is.
#pragma once

#include <vector>

namespace tessera {

struct Problem;
using Problems = std::vector<Problem>;

}  // namespace tessera
