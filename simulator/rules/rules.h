// Rules on a run's metrics: what practice expects of them, with the evidence for it.
//
// A rule file (configs/rules/*.json, docs/schemas/rules.schema.json) is a named profile of rules.
// One evaluator judges a prediction before a run and the measurements during it. Plain values
// and pure functions; metrics have the names of metrics.jsonl (verl's), limits the unit they state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem_list.h"

namespace tessera {

inline constexpr int kRulesVersion = 1;

enum class RuleScope { call, reshard, step };  // "switch" in files: one change of layout
std::string_view name_of(RuleScope scope);
enum class RuleOperator { less, at_most, greater, at_least };  // what must hold: "<", "<=", ...
std::string_view name_of(RuleOperator relation);
enum class RuleEvidence { confirmed, conflicting, refuted };
std::string_view name_of(RuleEvidence evidence);
enum class RuleAction { none, warn, pause, set_lr, roll_back, stop };
std::string_view name_of(RuleAction action);
/// The unit of a rule's value. `predicted`: multiples of what the plan predicts for the metric;
/// `step_share`: fractions of timing_s/step.
enum class RuleUnit {
  ratio,
  percent,
  s,
  ms,
  gib,
  tokens_per_s_per_gpu,
  nats,
  predicted,
  step_share
};
std::string_view name_of(RuleUnit unit);

/// Parameters of the actor (in 1e9) that a rule speaks of; `most` 0 = no upper end.
struct ModelClass {
  double least = 0, most = 0;
  bool holds(double billions) const { return billions >= least && (most <= 0 || billions <= most); }
  bool operator==(const ModelClass&) const = default;
};

struct Rule {
  std::string name, metric;
  RuleScope scope = RuleScope::step;
  RuleOperator relation = RuleOperator::at_most;
  double value = 0;
  RuleUnit unit = RuleUnit::ratio;
  ModelClass model_class;
  std::string source;
  RuleEvidence evidence = RuleEvidence::confirmed;
  std::string published;  // the range that was published, in words
  std::string advice;
  RuleAction action = RuleAction::warn;
  bool enabled = true;
  std::int64_t after_steps = 0;  // of a run that begins or goes on: these are not judged
  std::int64_t for_steps = 1;    // in a row that violate it before it acts in a run
};

struct RuleProfile {
  std::string profile, note;
  std::vector<Rule> rules;
};

/// A file or a preset's name (configs/rules/NAME.json). nullopt and every Problem of the file.
std::optional<RuleProfile> read_rules(const std::filesystem::path& where, Problems& problems);
std::optional<RuleProfile> parse_rules(std::string_view text, const std::string& file,
                                       Problems& problems);

/// Numbers by the metric's name, in the metric's own unit (seconds, fractions, GiB, ...).
using MetricValues = std::map<std::string, double, std::less<>>;

/// Values that a plan promises and values that no run of it can pass: filled by plan_metrics.h.
struct Expectation {
  MetricValues predicted;  // by metric
  MetricValues bound;      // the best value that the hardware admits; absent = none is known
  double parameters_in_billions = 0;
  /// The ranks are processors: what they reach of their peak is not held against figures of GPUs.
  bool on_processors = false;
};

enum class RuleOutcome {
  holds,
  violated,
  unreachable,  // the limit lies beyond what the plan's hardware admits
  unknown,      // the metric is not there
  off,          // disabled, or for another class of models
};
std::string_view name_of(RuleOutcome outcome);

struct RuleVerdict {
  RuleOutcome outcome = RuleOutcome::unknown;
  std::optional<double> value;             // of the metric
  std::optional<double> limit;             // in the metric's unit
  std::optional<double> predicted, bound;  // of the expectation
  /// True when the rule would be violated by these values were it enabled: shown, never acted on.
  bool would_fail = false;
};

/// The verdict of one rule on `values` (measured, or the prediction itself).
RuleVerdict judge(const Rule& rule, const MetricValues& values, const Expectation& expectation);

/// Rules with verdicts in the file's order; the pointers are the profile's.
struct JudgedRule {
  const Rule* rule = nullptr;
  RuleVerdict verdict;
};
std::vector<JudgedRule> judge(const RuleProfile& profile, const MetricValues& values,
                              const Expectation& expectation);
std::vector<JudgedRule> judge(RuleProfile&&, const MetricValues&, const Expectation&) = delete;

/// One rule per block of lines: outcome, metric against limit, "predicted X, bound Y" where the
/// plan cannot reach it, evidence and source, advice.
std::string describe(const RuleProfile& profile, const std::vector<JudgedRule>& judged);
std::string to_json(const RuleProfile& profile, const std::vector<JudgedRule>& judged);

}  // namespace tessera
