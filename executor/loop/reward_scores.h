// Scores of responses by the run's reward functions: rules on every rank, programs on the ranks
// that have their processes.
//
// Called on every rank of the world; afterwards every rank holds the same scores.
#pragma once

#include <functional>
#include <span>

#include "cost_models/documents/problem.h"
#include "executor/loop/run_saver.h"
#include "executor/loop/worker.h"
#include "executor/prompts/prompt_set.h"
#include "executor/rl/rows.h"
#include "executor/rollout/request_queue.h"

namespace tessera {

/// Makes the processes of this rank's programs. Throws Error(bad_input) where a sandbox is asked
/// for and cannot be had. Collective.
RewardWorkersOfRank make_reward_workers(const PromptSet& set, const RewardPrograms& programs,
                                        const Worker& worker);

/// Between two passes of generation: gives the programs of this rank the responses that have ended
/// and takes in scores, without waiting.
void score_ended(RewardWorkersOfRank& own, const PromptSet& set,
                 std::span<const EndedSequence> ended);

/// What single functions say of a response: a score of each (NaN = none), and of the details the
/// first answer and the first accuracy; the plain number of an only function is its accuracy.
struct ResponseScores {
  std::vector<double> by_function;
  ScoreDetail detail;
};

/// No response ever had a score (bad_input). All ranks throw it with the same words.
class RewardsFailed : public Error {
 public:
  using Error::Error;
};

/// score (the weighted sum) and components of every sequence. A response that a program gives no
/// score has 0 of it, is counted in reward/failed and told. Returns reward/NAME/mean where there
/// are several functions, and of programs reward/exposed_s (what this rank waited for them) and
/// reward/overlapped (the part of the scores that were there before anybody waited). `scores`
/// where given gets an entry for each sequence. Throws RewardsFailed where programs have never
/// given any score: the run would learn nothing. `stop` is asked while programs are waited for, on
/// all ranks at once, and agreed on: once it says so they are waited for no more, and nothing is
/// scored or told.
Metrics score_by_functions(Worker& worker, const PromptSet& set, std::span<Sequence> sequences,
                           const Note& note, const std::function<bool()>& stop,
                           std::vector<ResponseScores>* scores = nullptr);

}  // namespace tessera
