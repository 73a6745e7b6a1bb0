#include "planner/pricing/peak_memory.h"

#include <algorithm>

#include "planner/pricing/memory_limit.h"
#include "planner/pricing/role/groups.h"
#include "planner/request/candidate.h"

namespace tessera {

BlockMemory block_memory(const Solution& solution, std::size_t block, Phase phase,
                         CostEvaluator& costs, CostEvaluator& generating) {
  BlockMemory memory;
  for (const Role role : solution.placement[block]) {
    RoleMemory& own = memory.roles.emplace_back();
    own.candidate = solution.choice.at(role);
    own.order = dealt_order(own.candidate, costs.request().traits);
    CostEvaluator& pricer = role == Role::rollout ? generating : costs;
    for (int stage = 0; stage < own.candidate.pp; ++stage) {
      own.by_stage.push_back(pricer.memory(own.candidate, phase, stage));
      own.bytes.emplace_back(own.by_stage.back().total());
    }
  }
  const PlanRequest& seen = costs.request(memory.roles.front().candidate.view);
  memory.reserve = reserve_of(seen);
  return memory;
}

int stage_of_rank(const RoleMemory& role, int rank) {
  const Candidate& c = role.candidate;
  const int inner = c.tp * c.cp;
  return role.order == RankOrder::megatron ? rank / (inner * c.dp) : rank / inner % c.pp;
}

Bytes bytes_of_rank(const BlockMemory& block, int rank) {
  Bytes total = block.reserve;
  for (const RoleMemory& role : block.roles) {
    total += role.bytes[static_cast<std::size_t>(stage_of_rank(role, rank))];
  }
  return total;
}

Bytes peak_bytes(const std::vector<ScheduledCall>& schedule, const Solution& solution,
                 CostEvaluator& costs, CostEvaluator& generating) {
  Bytes peak;
  for (std::size_t block = 0; block < solution.placement.size(); ++block) {
    for (const ScheduledCall& call : schedule) {
      const BlockMemory memory = block_memory(solution, block, call.phase, costs, generating);
      for (int rank = 0; rank < solution.sizes[block]; ++rank) {
        peak = std::max(peak, bytes_of_rank(memory, rank));
      }
    }
  }
  return peak;
}

}  // namespace tessera
