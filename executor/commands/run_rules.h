// Rules on a run's own steps: what `trainer.rules` names, judged after every step.
//
// One evaluator (simulator/rules) judges predictions, finished runs and these steps. Owned by rank
// 0; one thread.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "executor/rl/rows.h"
#include "planner/plan/plan.h"
#include "simulator/rules/rules.h"

namespace tessera {

class RunRules {
 public:
  /// `where`: a profile's name or a file. Throws Error(bad_input) with its problems.
  RunRules(const std::string& where, const Plan& plan);

  struct Judgement {
    std::vector<std::string> lines;  // of rules that have begun to be violated
    bool stop = false;               // one of them asks for more than a warning
  };
  /// A rule that asks to pause, to roll back or for another learning rate ends the run after the
  /// step, as one that asks to stop: the checkpoint is there, and the choice is the user's.
  Judgement judge(std::int64_t step, const Metrics& numbers);

 private:
  RuleProfile profile_;
  Expectation expectation_;
  std::set<std::string> violated_;  // by the step before
};

}  // namespace tessera
