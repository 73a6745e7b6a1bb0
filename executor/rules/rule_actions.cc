#include "executor/rules/rule_actions.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace tessera {
namespace {

/// What a rule that warns has to say is in its own line.
bool warn(const RuleOccasion&, RuleState&, RuleDecision&) { return true; }

bool lower_lr(const RuleOccasion& occasion, RuleState& state, RuleDecision& decision) {
  const RuleActionsConfig& config = occasion.config;
  const double lowered = std::max(config.lr_floor, state.lr_scale * config.lr_factor);
  const bool lowers = lowered < state.lr_scale;
  if (lowers) state.lr_scale = lowered;
  const std::int64_t first = occasion.step + (lowers ? 1 : 0);
  char text[160];
  std::snprintf(text, sizeof text,
                lowers ? "[Rule] from step %lld on learning rates are %.4g of what run.yaml says"
                       : "[Rule] after step %lld learning rates stay at %.4g of what run.yaml "
                         "says: rule_actions.lr_floor",
                static_cast<long long>(first), state.lr_scale);
  decision.lines.emplace_back(text);
  return lowers;
}

bool roll_back(const RuleOccasion& occasion, RuleState& state, RuleDecision& decision) {
  const std::int64_t most = occasion.config.roll_backs;
  const std::int64_t next = state.roll_backs + 1;
  const bool may = next <= most;
  decision.roll_back = occasion.can_roll_back;
  decision.stop = decision.stop || !may || !occasion.can_roll_back;
  char text[160];
  if (!occasion.can_roll_back) {
    std::snprintf(text, sizeof text,
                  "[Rule] step %lld cannot be rolled back: there is no checkpoint; the run ends",
                  static_cast<long long>(occasion.step));
  } else if (!may) {
    std::snprintf(text, sizeof text,
                  "[Rule] step %lld is rolled back and the run ends: it was rolled back %lld times "
                  "already (rule_actions.roll_backs)",
                  static_cast<long long>(occasion.step), static_cast<long long>(state.roll_backs));
  } else {
    std::snprintf(text, sizeof text,
                  "[Rule] step %lld is rolled back, roll-back %lld of at most %lld",
                  static_cast<long long>(occasion.step), static_cast<long long>(next),
                  static_cast<long long>(most));
  }
  decision.lines.emplace_back(text);
  return may && occasion.can_roll_back;
}

/// Whoever asks for it, the line is that of the pause itself (RunRecords::paused).
bool pause(const RuleOccasion&, RuleState&, RuleDecision& decision) {
  decision.pause = true;
  return true;
}

bool stop(const RuleOccasion& occasion, RuleState&, RuleDecision& decision) {
  decision.stop = true;
  decision.lines.push_back("[Rule] the run ends after step " + std::to_string(occasion.step));
  return true;
}

constexpr std::array kRows = {
    RuleActionRow{RuleAction::warn, "rules/warnings", &RuleState::warnings, warn},
    RuleActionRow{RuleAction::set_lr, "rules/lr_lowered", &RuleState::lr_lowered, lower_lr},
    RuleActionRow{RuleAction::roll_back, "rules/roll_backs", &RuleState::roll_backs, roll_back},
    RuleActionRow{RuleAction::pause, "rules/pauses", &RuleState::pauses, pause},
    RuleActionRow{RuleAction::stop, "rules/stops", &RuleState::stops, stop}};

std::int64_t count_of(const Metrics& numbers, const char* name) {
  const auto found = numbers.find(name);
  return found == numbers.end() ? 0 : static_cast<std::int64_t>(found->second);
}

}  // namespace

std::span<const RuleActionRow> rule_action_rows() { return kRows; }

RuleDecision decide(AskedActions asked, const RuleOccasion& occasion, RuleState& state) {
  RuleDecision decision{.pause = asked.person_pauses()};
  for (const RuleActionRow& row : kRows) {
    if (!asked.has(row.action)) continue;
    if (row.decide(occasion, state, decision)) ++(state.*row.count);
  }
  return decision;
}

void count_step(const Metrics& numbers, RuleState& state) {
  state.not_finite += count_of(numbers, "training/not_finite");
  state.skipped_updates += count_of(numbers, "training/skipped_updates");
}

Metrics rule_metrics(const RuleState& state) {
  Metrics metrics{{"rules/lr_scale", state.lr_scale},
                  {"rules/prompts_skipped", static_cast<double>(state.prompts_skipped)},
                  {"training/not_finite_total", static_cast<double>(state.not_finite)},
                  {"training/skipped_updates_total", static_cast<double>(state.skipped_updates)}};
  for (const RuleActionRow& row : kRows) {
    metrics[std::string(row.metric)] = static_cast<double>(state.*row.count);
  }
  return metrics;
}

}  // namespace tessera
