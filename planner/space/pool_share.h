// How the replicas of a rollout that has GPUs of its own share a step's sequences.
//
// A pure function; ranks count GPUs.
#pragma once

#include "planner/request/candidate.h"
#include "planner/request/request.h"

namespace tessera {

/// Each replica has as many; some have one more (sequence or prompt); some have one more and, in
/// whole nodes, a smaller pool of the same replicas has no more than these: it is as quick.
enum class PoolShare { even, uneven, spare };

/// Never spare where GPUs or replicas are fixed, or groups of ranks depend on their number.
PoolShare pool_share(const PlanRequest& request, PromptDealing prompts, const Candidate& rollout);

}  // namespace tessera
