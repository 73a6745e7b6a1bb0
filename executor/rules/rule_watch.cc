#include "executor/rules/rule_watch.h"

namespace tessera {

RuleTurn RuleWatch::look(const Rule& rule, RuleOutcome outcome) {
  if (steps_ <= rule.after_steps) return RuleTurn::quiet;
  Streak& streak = rules_[rule.name];
  if (outcome == RuleOutcome::violated) {
    streak.held = 0;
    if (++streak.violated < rule.for_steps && !streak.entered) return RuleTurn::quiet;
    const bool enters = !streak.entered;
    streak.entered = true;
    return enters ? RuleTurn::entered : RuleTurn::violated;
  }
  if (outcome != RuleOutcome::holds) return RuleTurn::quiet;
  streak.violated = 0;
  if (!streak.entered || ++streak.held < kCalmSteps) return RuleTurn::quiet;
  streak = {};
  return RuleTurn::left;
}

}  // namespace tessera
