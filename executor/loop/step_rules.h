// The rules of a run at work: asked after every step, obeyed before the next one.
//
// Rank 0 judges, all ranks carry out the same. Owned by the training loop; one thread. Collective
// over the world.
#pragma once

#include <filesystem>
#include <vector>

#include "executor/loop/training_loop.h"

namespace tessera {

class StepRules {
 public:
  /// Keeps references. Without a saver nothing can be rolled back.
  StepRules(Worker& worker, const RunConfig& config, const RunObserver& observer, RunSaver* saver)
      : worker_(worker), config_(config), observer_(observer), saver_(saver) {}

  /// Judges a step by its numbers and adds the rules' own to them. False: it is to be rolled back,
  /// and not to be saved.
  bool judge(std::int64_t step, Metrics& numbers);
  /// Carries out what was decided, with a line for each action: learning rates, a roll-back.
  /// `steps` are then those that the run has made. What is left to do is to stop or to pause.
  RuleDecision obey(std::int64_t& steps);
  /// Returns when nobody wants the run to pause any more, or `stopped` says that it is to end. No
  /// rank waits for a message of another one meanwhile: a pause is no stall.
  StopReason wait(std::int64_t steps, const std::function<StopReason()>& stopped);

 private:
  Worker& worker_;
  const RunConfig& config_;
  const RunObserver& observer_;
  RunSaver* saver_;
  RuleDecision decision_;                          // of the step that was judged last
  std::vector<std::filesystem::path> candidates_;  // to roll back to, the first choice first
};

}  // namespace tessera
