// The cheapest way from supplies to demands: a minimum-cost flow (Boost.Graph).
//
// The transportation problem with whole units. A pure function; costs have whatever unit the caller
// counts in.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace tessera {

/// flow[i][j]: units from supply i to demand j at least total cost. `cost[i][j]` >= 0, of one unit;
/// as few units as possible cost more than `most` each. Precondition: as much is supplied as
/// demanded, and `cost` has a row for every supply.
std::vector<std::vector<int>> min_cost_assignment(
    const std::vector<int>& supply, const std::vector<int>& demand,
    const std::vector<std::vector<std::int64_t>>& cost,
    std::int64_t most = std::numeric_limits<std::int64_t>::max());

}  // namespace tessera
