#include "planner/pricing/peak_memory.h"

#include <algorithm>

#include "planner/pricing/role/groups.h"
#include "planner/request/candidate.h"

namespace tessera {

Bytes peak_bytes(const std::vector<ScheduledCall>& schedule, const Solution& solution,
                 CostEvaluator& costs, CostEvaluator& generating) {
  Bytes peak;
  for (std::size_t block = 0; block < solution.placement.size(); ++block) {
    for (const ScheduledCall& call : schedule) {
      std::vector<std::vector<Bytes>> by_stage;  // of each role of the block
      std::vector<Candidate> candidates;
      for (const Role role : solution.placement[block]) {
        const Candidate& candidate = solution.choice.at(role);
        CostEvaluator& own = role == Role::rollout ? generating : costs;
        candidates.push_back(candidate);
        by_stage.emplace_back();
        for (int stage = 0; stage < candidate.pp; ++stage) {
          by_stage.back().emplace_back(own.memory(candidate, call.phase, stage).total());
        }
      }
      for (int rank = 0; rank < solution.sizes[block]; ++rank) {
        Bytes total{static_cast<std::int64_t>(
            costs.request(candidates.front().view).calibration.reserve_bytes.value)};
        for (std::size_t r = 0; r < candidates.size(); ++r) {
          const Candidate& c = candidates[r];
          const int inner = c.tp * c.cp;
          const int stage = dealt_order(c, costs.request().engine) == RankOrder::megatron
                                ? rank / (inner * c.dp)
                                : rank / inner % c.pp;
          total += by_stage[r][static_cast<std::size_t>(stage)];
        }
        peak = std::max(peak, total);
      }
    }
  }
  return peak;
}

}  // namespace tessera
