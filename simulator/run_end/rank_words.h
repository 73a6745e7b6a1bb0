// A rank's place in its run, as messages name it. Pure functions.
#pragma once

#include <string>

#include "simulator/timeline/rank_status.h"

namespace tessera {

/// "rank 2 in phase gen of step 31".
std::string where(const RankStatus& rank);

/// The same and ", since 14:02:11 UTC".
std::string where_since(const RankStatus& rank);

}  // namespace tessera
