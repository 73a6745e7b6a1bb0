// The responses of a step and their scores: generation or a record, groups that are filtered,
// greedy answers, rewards and their shaping.
//
// Every function is called on every rank of the world; afterwards every rank holds the same
// sequences with their scores, but for a reward model's (score_sequences).
#pragma once

#include <functional>
#include <span>

#include "executor/loop/reward_scores.h"
#include "executor/loop/run_saver.h"
#include "executor/loop/worker.h"
#include "executor/prompts/prompt_set.h"
#include "executor/rl/experience.h"
#include "executor/rl/rows.h"
#include "executor/rl/sampling.h"
#include "executor/rollout/request_queue.h"

namespace tessera {

struct Plan;

/// How a step of this run generates.
RolloutOptions rollout_options(const Plan& plan, const RunConfig& config, const PromptSet& prompts);

/// What a step's rollout needs of its run.
struct RolloutSetting {
  Worker& worker;
  const Plan& plan;
  const RunConfig& config;
  const PromptSet& prompts;
  const RolloutOptions& options;
  std::span<const Experience> recorded;  // of rollout_replay; empty = generate
  std::function<bool()> stop;            // asked while something is awaited; ranks agree
  Note note;                             // for people, on one rank; may be empty
};

/// Responses of all replicas to these prompts, on every rank; figures are added to `metrics`.
/// `engine` is this rank's, nullptr where it does not generate. Throws NoDraw on every rank where
/// any of them could not draw.
std::vector<Sequence> generate_on_replicas(const RolloutSetting& setting, RolloutEngine* engine,
                                           std::int64_t step, std::span<const TokenPrompt> prompts,
                                           const RolloutOptions& options, Metrics& metrics,
                                           const AfterPass& after_pass = {});

/// What `draw` generates with the weights after `steps` steps. Where no token can be drawn, which
/// every rank throws, `saver` hears that they are ruined; nullptr: nothing is saved.
template <class Draw>
auto drawn_after(std::int64_t steps, RunSaver* saver, Draw draw) {
  try {
    return draw();
  } catch (const NoDraw&) {
    if (saver != nullptr) saver->ruined(steps, "no token can be drawn with its weights");
    throw;
  }
}

struct StepRollout {
  Experience experience;
  /// The greedy answer to each prompt, where the estimator reads their scores; else empty.
  Experience greedy;
  bool scored = false;  // the group filter has scored `experience`
  Metrics metrics;
};
/// Where the step's prompts begin in the source: a run that filters groups or was rolled back has
/// taken more than per_step a step.
std::int64_t first_prompt(const Worker& worker, std::int64_t step, std::int64_t per_step);

/// Throws Error(bad_input) where the record lacks what the step needs.
StepRollout roll_out(const RolloutSetting& setting, std::int64_t step);

/// Scores by the reward functions, or by the reward model, and adds overlong shaping. Returns what
/// is reported of it. `scores` where given gets what the functions say of each sequence.
Metrics score_sequences(const RolloutSetting& setting, Experience& experience,
                        std::vector<ResponseScores>* scores = nullptr);

/// The scores of a step, and greedy_score of every sequence from the greedy answer to its prompt;
/// `greedy` may be empty.
Metrics score_step(const RolloutSetting& setting, Experience& experience, Experience& greedy);

}  // namespace tessera
