// Rules on a run's own steps: what `trainer.rules` names, judged after every step.
//
// One evaluator (simulator/rules) judges predictions, finished runs and these steps. Owned by rank
// 0; one thread.
#pragma once

#include <string>
#include <vector>

#include "executor/rl/rows.h"
#include "executor/rules/rule_actions.h"
#include "executor/rules/rule_watch.h"
#include "planner/plan/plan.h"
#include "simulator/rules/plan_metrics.h"
#include "simulator/rules/rules.h"

namespace tessera {

class RunRules {
 public:
  /// `where`: a profile's name or a file. Throws Error(bad_input) with its problems.
  /// `on_processors`: the ranks are.
  RunRules(const std::string& where, const Plan& plan, bool on_processors);

  struct Judgement {
    std::vector<std::string> lines;  // of rules that have begun, or ceased, to be violated
    AskedActions asked;
    std::string pausing;  // "the rule NAME" that asks for a pause; empty where none does
  };
  /// The first judgement also names the rules whose numbers are not there, and says why predicted
  /// times are not judged where a rule asks for that.
  /// A rule that warns or pauses does so when it begins to be violated (rule_watch.h); all others
  /// ask again after every step that violates them.
  Judgement judge(std::int64_t step, const Metrics& numbers);
  /// After a roll-back no rule is violated any more.
  void forget() { watch_.forget(); }

 private:
  RuleProfile profile_;
  Expectation expectation_;
  RoughTimes rough_ = RoughTimes::none;
  std::string why_not_times_;  // are judged; empty where they are
  bool begun_ = false;         // a step was judged
  RuleWatch watch_;
};

}  // namespace tessera
