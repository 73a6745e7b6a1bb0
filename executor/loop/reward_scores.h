// Scores of responses by the run's reward functions: rules on every rank, programs on the ranks
// that have their processes.
//
// Called on every rank of the world; afterwards every rank holds the same scores.
#pragma once

#include <span>

#include "executor/loop/run_saver.h"
#include "executor/loop/worker.h"
#include "executor/prompts/prompt_set.h"
#include "executor/rl/rows.h"

namespace tessera {

/// Makes the processes of this rank's programs. Throws Error(bad_input) where a sandbox is asked
/// for and cannot be had.
RewardWorkersOfRank make_reward_workers(const PromptSet& set, const RewardPrograms& programs,
                                        const Communicator& host);

/// score (the weighted sum) and components of every sequence. A response that a program gives no
/// score has 0 of it, is counted in reward/failed and told. Returns reward/NAME/mean where there
/// are several functions. Throws Error(bad_input) where programs have never given any score: the
/// run would learn nothing.
Metrics score_by_functions(Worker& worker, const PromptSet& set, std::span<Sequence> sequences,
                           const Note& note);

}  // namespace tessera
