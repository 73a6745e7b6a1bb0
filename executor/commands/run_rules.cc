#include "executor/commands/run_rules.h"

#include <cstdio>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/fit/derived_calibration.h"
#include "simulator/rules/plan_metrics.h"

namespace tessera {
namespace {

RuleProfile profile_at(const std::string& where) {
  Problems problems;
  std::optional<RuleProfile> profile = read_rules(where, problems);
  if (!profile) throw Error(ExitCode::bad_input, std::move(problems));
  return *std::move(profile);
}

/// Rules that compare with the plan are unknown where its calibration is not there.
Expectation expected_of(const Plan& plan) {
  Problems ignored;
  const auto calibration = calibration_named(plan.provenance.calibration, plan.cluster, ignored);
  return calibration ? expectation_of(plan, *calibration) : Expectation{};
}

std::string line_of(std::int64_t step, const JudgedRule& judged) {
  const Rule& rule = *judged.rule;
  char text[160];
  std::snprintf(text, sizeof text, "[Rule] step %lld: %s: %s is %.4g, not %s %.4g",
                static_cast<long long>(step), rule.name.c_str(), rule.metric.c_str(),
                judged.verdict.value.value_or(0), std::string(name_of(rule.relation)).c_str(),
                judged.verdict.limit.value_or(0));
  std::string line = text;
  if (rule.action != RuleAction::warn) line += " (" + std::string(name_of(rule.action)) + ")";
  return rule.advice.empty() ? line : line + "; " + rule.advice;
}

}  // namespace

RunRules::RunRules(const std::string& where, const Plan& plan)
    : profile_(profile_at(where)), expectation_(expected_of(plan)) {}

RunRules::Judgement RunRules::judge(std::int64_t step, const Metrics& numbers) {
  Judgement judgement;
  std::set<std::string> violated;
  const MetricValues values(numbers.begin(), numbers.end());
  for (const JudgedRule& judged : tessera::judge(profile_, values, expectation_)) {
    const RuleAction action = judged.rule->action;
    if (judged.verdict.outcome != RuleOutcome::violated || action == RuleAction::none) continue;
    violated.insert(judged.rule->name);
    const bool begins = !violated_.contains(judged.rule->name);
    if (begins) judgement.lines.push_back(line_of(step, judged));
    const bool once = action == RuleAction::warn || action == RuleAction::pause;
    if (begins || !once) judgement.asked.add(action);
  }
  violated_ = std::move(violated);
  return judgement;
}

}  // namespace tessera
