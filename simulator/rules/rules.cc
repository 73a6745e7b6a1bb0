#include "simulator/rules/rules.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "cost_models/spec/enum_names.h"

namespace tessera {
namespace {

constexpr auto kScopes = enum_names<RuleScope>(
    {{RuleScope::call, "call"}, {RuleScope::reshard, "switch"}, {RuleScope::step, "step"}});
constexpr auto kOperators = enum_names<RuleOperator>({{RuleOperator::less, "<"},
                                                      {RuleOperator::at_most, "<="},
                                                      {RuleOperator::greater, ">"},
                                                      {RuleOperator::at_least, ">="}});
constexpr auto kEvidence = enum_names<RuleEvidence>({{RuleEvidence::confirmed, "confirmed"},
                                                     {RuleEvidence::conflicting, "conflicting"},
                                                     {RuleEvidence::refuted, "refuted"}});
constexpr auto kActions = enum_names<RuleAction>({{RuleAction::none, "none"},
                                                  {RuleAction::warn, "warn"},
                                                  {RuleAction::pause, "pause"},
                                                  {RuleAction::set_lr, "set lr"},
                                                  {RuleAction::roll_back, "roll back"},
                                                  {RuleAction::stop, "stop"}});
constexpr auto kUnits = enum_names<RuleUnit>({{RuleUnit::ratio, "ratio"},
                                              {RuleUnit::percent, "percent"},
                                              {RuleUnit::s, "s"},
                                              {RuleUnit::ms, "ms"},
                                              {RuleUnit::gib, "GiB"},
                                              {RuleUnit::tokens_per_s_per_gpu, "tokens/s/GPU"},
                                              {RuleUnit::nats, "nats"},
                                              {RuleUnit::predicted, "x predicted"},
                                              {RuleUnit::step_share, "of step"}});
constexpr auto kOutcomes = enum_names<RuleOutcome>({{RuleOutcome::holds, "holds"},
                                                    {RuleOutcome::violated, "violated"},
                                                    {RuleOutcome::unreachable, "unreachable"},
                                                    {RuleOutcome::unknown, "unknown"},
                                                    {RuleOutcome::off, "off"}});

std::optional<double> find(const MetricValues& values, std::string_view name) {
  const auto found = values.find(name);
  if (found == values.end() || !std::isfinite(found->second)) return std::nullopt;
  return found->second;
}

// The limit in the metric's own unit; nullopt where it refers to a number that is not there.
std::optional<double> limit_of(const Rule& rule, const MetricValues& values,
                               const Expectation& expectation) {
  const auto scaled = [&](std::optional<double> base) -> std::optional<double> {
    if (!base) return std::nullopt;
    return rule.value * *base;
  };
  switch (rule.unit) {
    case RuleUnit::percent:
      return rule.value * 1e-2;
    case RuleUnit::ms:
      return rule.value * 1e-3;
    case RuleUnit::predicted:
      return scaled(find(expectation.predicted, rule.metric));
    case RuleUnit::step_share:
      return scaled(find(values, "timing_s/step"));
    default:
      return rule.value;
  }
}

// Part of a peak that was published of GPUs, and the ranks have none of these.
bool is_of_gpus(const Rule& rule, const Expectation& expectation) {
  return expectation.on_processors && rule.unit != RuleUnit::predicted &&
         rule.metric.starts_with("perf/mfu/");
}

bool satisfies(double value, RuleOperator relation, double limit) {
  switch (relation) {
    case RuleOperator::less:
      return value < limit;
    case RuleOperator::at_most:
      return value <= limit;
    case RuleOperator::greater:
      return value > limit;
    case RuleOperator::at_least:
      return value >= limit;
  }
  return false;
}

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g", value);
  return text.data();
}

std::string limit_text(const Rule& rule) {
  return std::string(name_of(rule.relation)) + " " + number(rule.value) +
         (rule.unit == RuleUnit::ratio ? "" : " " + std::string(name_of(rule.unit)));
}

std::string class_text(const ModelClass& range) {
  if (range == ModelClass{}) return {};
  if (range.most <= 0) return ", models from " + number(range.least) + "B";
  return ", models of " + number(range.least) + "B to " + number(range.most) + "B";
}

}  // namespace

std::string_view name_of(RuleScope scope) { return kScopes[scope]; }
std::string_view name_of(RuleOperator relation) { return kOperators[relation]; }
std::string_view name_of(RuleEvidence evidence) { return kEvidence[evidence]; }
std::string_view name_of(RuleAction action) { return kActions[action]; }
std::string_view name_of(RuleUnit unit) { return kUnits[unit]; }
std::string_view name_of(RuleOutcome outcome) { return kOutcomes[outcome]; }

RuleVerdict judge(const Rule& rule, const MetricValues& values, const Expectation& expectation) {
  RuleVerdict verdict;
  verdict.value = find(values, rule.metric);
  if (!is_of_gpus(rule, expectation)) verdict.limit = limit_of(rule, values, expectation);
  verdict.predicted = find(expectation.predicted, rule.metric);
  verdict.bound = find(expectation.bound, rule.metric);
  const bool known = verdict.value && verdict.limit;
  verdict.would_fail = known && !satisfies(*verdict.value, rule.relation, *verdict.limit);
  const bool applies = rule.enabled && rule.model_class.holds(expectation.parameters_in_billions);
  if (!applies) {
    verdict.outcome = RuleOutcome::off;
  } else if (!known) {
    verdict.outcome = RuleOutcome::unknown;
  } else if (!verdict.would_fail) {
    verdict.outcome = RuleOutcome::holds;
  } else {
    const bool reachable =
        !verdict.bound || satisfies(*verdict.bound, rule.relation, *verdict.limit);
    verdict.outcome = reachable ? RuleOutcome::violated : RuleOutcome::unreachable;
  }
  return verdict;
}

std::vector<JudgedRule> judge(const RuleProfile& profile, const MetricValues& values,
                              const Expectation& expectation) {
  std::vector<JudgedRule> judged;
  for (const Rule& rule : profile.rules)
    judged.push_back({&rule, judge(rule, values, expectation)});
  return judged;
}

std::string describe(const RuleProfile& profile, const std::vector<JudgedRule>& judged) {
  std::string out = "rules: " + profile.profile + "\n";
  std::map<RuleOutcome, int> counts;
  for (const auto& [rule, verdict] : judged) {
    ++counts[verdict.outcome];
    out += "  " + std::string(name_of(verdict.outcome)) +
           std::string(12 - name_of(verdict.outcome).size(), ' ') + rule->metric + " " +
           limit_text(*rule) + " (" + rule->name + class_text(rule->model_class) + ")\n";
    std::string facts;
    if (verdict.value) facts += "value " + number(*verdict.value);
    if (verdict.limit && verdict.value) facts += ", limit " + number(*verdict.limit);
    const bool missed = verdict.would_fail && verdict.predicted;
    if (missed) {
      facts += "; predicted " + number(*verdict.predicted);
      if (verdict.bound) facts += ", bound " + number(*verdict.bound);
    }
    if (verdict.outcome == RuleOutcome::off && verdict.would_fail) facts += "; would fail";
    if (!facts.empty()) out += "              " + facts + "\n";
    out += "              " + std::string(name_of(rule->evidence));
    if (!rule->published.empty()) out += ": " + rule->published;
    out += " [" + rule->source + "]\n";
    const bool acts =
        verdict.outcome == RuleOutcome::violated || verdict.outcome == RuleOutcome::unreachable;
    if (acts) {
      out += "              " + std::string(name_of(rule->action)) + ": " + rule->advice + "\n";
    }
  }
  out += "  " + std::to_string(judged.size()) + " rules:";
  for (const auto& [outcome, count] : counts) {
    out += " " + std::to_string(count) + " " + std::string(name_of(outcome));
  }
  return out + "\n";
}

}  // namespace tessera
