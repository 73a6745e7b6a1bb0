#include "executor/commands/run_rules.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "cost_models/documents/problem.h"
#include "planner/request/plan_constants.h"

namespace tessera {
namespace {

RuleProfile profile_at(const std::string& where) {
  Problems problems;
  std::optional<RuleProfile> profile = read_rules(where, problems);
  if (!profile) throw Error(ExitCode::bad_input, std::move(problems));
  return *std::move(profile);
}

/// Rules that compare with the plan are unknown where its calibration is not there.
RunExpectation expected_of(const Plan& plan, bool on_processors) {
  Problems ignored;
  const auto constants = constants_of(plan, ignored);
  return constants ? expectation_of_run(plan, constants->calibration, on_processors)
                   : RunExpectation{};
}

std::string line_of(std::int64_t step, const JudgedRule& judged) {
  const Rule& rule = *judged.rule;
  char text[160];
  std::snprintf(text, sizeof text, "[Rule] step %lld: %s: %s is %.4g, not %s %.4g",
                static_cast<long long>(step), rule.name.c_str(), rule.metric.c_str(),
                judged.verdict.value.value_or(0), std::string(name_of(rule.relation)).c_str(),
                judged.verdict.limit.value_or(0));
  std::string line = text;
  if (rule.for_steps > 1) line += ", for " + std::to_string(rule.for_steps) + " steps";
  if (rule.action != RuleAction::warn) line += " (" + std::string(name_of(rule.action)) + ")";
  return rule.advice.empty() ? line : line + "; " + rule.advice;
}

std::string line_of_end(std::int64_t step, const JudgedRule& judged) {
  char text[160];
  std::snprintf(text, sizeof text, "[Rule] step %lld: %s holds again: %s is %.4g, %s %.4g",
                static_cast<long long>(step), judged.rule->name.c_str(),
                judged.rule->metric.c_str(), judged.verdict.value.value_or(0),
                std::string(name_of(judged.rule->relation)).c_str(),
                judged.verdict.limit.value_or(0));
  return text;
}

/// Why an enabled rule was not judged: the step lacks its metric, or the plan what it is held to.
/// Empty where it was, and where the metric is there and no number.
std::string why_not_judged(const JudgedRule& judged, const Metrics& numbers) {
  const std::string& metric = judged.rule->metric;
  if (judged.verdict.outcome != RuleOutcome::unknown) return {};
  if (numbers.contains(metric)) {
    return judged.verdict.limit ? "" : "nothing is predicted for " + metric;
  }
  std::vector<std::string> known;
  for (const auto& [name, number] : numbers) known.push_back(name);
  const std::string hint = did_you_mean(metric, known);
  return "no " + metric + (hint.empty() ? "" : ", " + hint);
}

/// Whether the rule holds a number to a prediction that is left out, as times are rough.
bool needs_times(const JudgedRule& judged, RoughTimes rough, const Metrics& numbers) {
  return judged.verdict.outcome == RuleOutcome::unknown && !judged.verdict.limit &&
         leaves_out(rough, judged.rule->metric) && numbers.contains(judged.rule->metric);
}

/// Rules that could do something, were their numbers there: a mistyped one would never be missed.
std::string not_judged_line(std::int64_t step, const std::vector<JudgedRule>& all, RoughTimes rough,
                            const Metrics& numbers) {
  std::string rules;
  for (const JudgedRule& judged : all) {
    if (judged.rule->action == RuleAction::none || needs_times(judged, rough, numbers)) continue;
    const std::string why = why_not_judged(judged, numbers);
    if (why.empty()) continue;
    rules += (rules.empty() ? "" : "; ") + judged.rule->name + " (" + why + ")";
  }
  return rules.empty() ? "" : "[Rule] not judged after step " + std::to_string(step) + ": " + rules;
}

}  // namespace

RunRules::RunRules(const std::string& where, const Plan& plan, bool on_processors)
    : profile_(profile_at(where)) {
  RunExpectation expected = expected_of(plan, on_processors);
  expectation_ = std::move(expected.expectation);
  rough_ = expected.rough;
  why_not_times_ = why_times_are_not_judged(rough_, plan);
}

RunRules::Judgement RunRules::judge(std::int64_t step, const Metrics& numbers) {
  Judgement judgement;
  watch_.begin_step();
  const MetricValues values(numbers.begin(), numbers.end());
  const std::vector<JudgedRule> all = tessera::judge(profile_, values, expectation_);
  if (!std::exchange(begun_, true)) {
    if (std::string line = not_judged_line(step, all, rough_, numbers); !line.empty()) {
      judgement.lines.push_back(std::move(line));
    }
    const bool needed = std::ranges::any_of(
        all, [&](const JudgedRule& judged) { return needs_times(judged, rough_, numbers); });
    if (needed) {
      judgement.lines.push_back("[Rule] predicted times are not judged: " + why_not_times_);
    }
  }
  for (const JudgedRule& judged : all) {
    const RuleAction action = judged.rule->action;
    if (action == RuleAction::none) continue;
    const RuleTurn turn = watch_.look(*judged.rule, judged.verdict.outcome);
    if (turn == RuleTurn::entered) judgement.lines.push_back(line_of(step, judged));
    if (turn == RuleTurn::left) judgement.lines.push_back(line_of_end(step, judged));
    const bool once = action == RuleAction::warn || action == RuleAction::pause;
    if (turn == RuleTurn::entered || (turn == RuleTurn::violated && !once)) {
      judgement.asked.add(action);
      if (action == RuleAction::pause) {
        judgement.pausing +=
            (judgement.pausing.empty() ? "the rule " : " and the rule ") + judged.rule->name;
      }
    }
  }
  return judgement;
}

}  // namespace tessera
