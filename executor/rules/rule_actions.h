// What a run does when its rules ask for more than a word: one row of a table for each action.
//
// Rank 0 judges a step (simulator/rules) and all ranks decide alike, over the same RuleState, which
// checkpoints hold. Pure functions: whoever calls them carries out what was decided. Torch-free.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/checkpoint/run_checkpoint.h"
#include "executor/config/run_config.h"
#include "executor/rl/rows.h"
#include "simulator/rules/rules.h"

namespace tessera {

/// The actions that the rules of a step ask for, each once, and whether a person asks for a pause;
/// ranks tell one another the bits.
class AskedActions {
 public:
  AskedActions() = default;
  explicit AskedActions(std::int32_t bits) : bits_(bits) {}

  void add(RuleAction action) { bits_ |= bit(action); }
  bool has(RuleAction action) const { return (bits_ & bit(action)) != 0; }
  void add_pause_of_person() { bits_ |= kPersonPauses; }
  bool person_pauses() const { return (bits_ & kPersonPauses) != 0; }
  std::int32_t bits() const { return bits_; }

 private:
  static constexpr std::int32_t kPersonPauses = 1 << 30;
  static std::int32_t bit(RuleAction action) { return 1 << static_cast<int>(action); }
  std::int32_t bits_ = 0;
};

/// Where the run stands when its rules ask.
struct RuleOccasion {
  std::int64_t step = 0;       // that was judged
  bool can_roll_back = false;  // there is a complete checkpoint
  RuleActionsConfig config;
};

/// What is left to do for the run, in this order, once the step is recorded.
struct RuleDecision {
  bool roll_back = false, stop = false, pause = false;
  std::vector<std::string> lines;  // for people
};

/// One action. `decide` changes the state and the decision, says what it does, and returns whether
/// it does anything: only then it is counted.
struct RuleActionRow {
  RuleAction action;
  std::string_view metric;
  std::int64_t RuleState::*count;
  bool (*decide)(const RuleOccasion& occasion, RuleState& state, RuleDecision& decision);
};
std::span<const RuleActionRow> rule_action_rows();

/// Decides for everything that was asked. The pause of a person is none of a rule's.
RuleDecision decide(AskedActions asked, const RuleOccasion& occasion, RuleState& state);

/// Adds a step's training/not_finite and training/skipped_updates to the counts.
void count_step(const Metrics& numbers, RuleState& state);

/// rules/warnings, rules/lr_lowered, rules/roll_backs, rules/pauses, rules/stops, rules/lr_scale,
/// rules/prompts_skipped, training/not_finite_total, training/skipped_updates_total.
Metrics rule_metrics(const RuleState& state);

}  // namespace tessera
