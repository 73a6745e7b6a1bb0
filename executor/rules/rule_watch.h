// When a rule begins to be violated in a run, and when it no longer is.
//
// A number that swings about its limit would say so in every other step: a rule is entered after as
// many steps in a row as it asks for (Rule::for_steps) and left after some in a row that hold.
// Plain values, one owner. Torch-free.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "simulator/rules/rules.h"

namespace tessera {

/// What a step is for a rule: quiet (neither is new), the one that enters it or another one that
/// violates it since, the one that leaves it.
enum class RuleTurn { quiet, entered, violated, left };

class RuleWatch {
 public:
  /// Steps in a row that hold before a rule is left.
  static constexpr std::int64_t kCalmSteps = 5;

  /// Before the rules of another step are looked at.
  void begin_step() { ++steps_; }
  RuleTurn look(const Rule& rule, RuleOutcome outcome);
  /// After a roll-back no rule is violated any more.
  void forget() { rules_.clear(); }

 private:
  struct Streak {
    std::int64_t violated = 0, held = 0;  // steps in a row
    bool entered = false;
  };
  std::int64_t steps_ = 0;
  std::map<std::string, Streak, std::less<>> rules_;  // by name
};

}  // namespace tessera
