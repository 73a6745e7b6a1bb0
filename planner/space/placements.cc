#include "planner/space/placements.h"

#include <algorithm>
#include <utility>

namespace tessera {

std::vector<Placement> all_placements(const std::vector<Role>& roles, bool disaggregated) {
  std::vector<Placement> placements{{}};
  for (const Role role : roles) {
    std::vector<Placement> extended;
    for (const Placement& placement : placements) {
      if (role == Role::rollout) {
        extended.push_back(placement);
        extended.back().front().push_back(role);
        continue;
      }
      for (std::size_t block = 0; block <= placement.size(); ++block) {
        Placement next = placement;
        if (block == placement.size()) next.emplace_back();
        next[block].push_back(role);
        extended.push_back(std::move(next));
      }
    }
    placements = std::move(extended);
  }
  const bool generates = std::find(roles.begin(), roles.end(), Role::rollout) != roles.end();
  if (!disaggregated || !generates) return placements;
  const std::size_t together = placements.size();
  for (std::size_t i = 0; i < together; ++i) {
    Placement apart = placements[i];
    std::erase(apart.front(), Role::rollout);
    apart.push_back({Role::rollout});
    placements.push_back(std::move(apart));
  }
  return placements;
}

}  // namespace tessera
