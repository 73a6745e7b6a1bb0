// tessera explain: what a plan says about itself, why it is not another one, and what rules of
// practice say about it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/names.h"
#include "cli/progress.h"
#include "cost_models/documents/problem.h"
#include "planner/explain/advice.h"
#include "planner/explain/limits.h"
#include "planner/explain/memory_account.h"
#include "planner/explain/type_reasons.h"
#include "planner/explain/why_not.h"
#include "planner/interop/repriced.h"
#include "planner/plan/certified.h"
#include "planner/plan/plan.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"
#include "simulator/rules/plan_metrics.h"
#include "simulator/timeline/metrics.h"

namespace tessera {
namespace {

struct ExplainOptions {
  std::string plan, rules, run, calibration;
  std::vector<std::string> why_not;
  bool advice = false, json = false, memory = false;
  std::optional<int> rank;  // of the account of memory, as `phase`
  std::optional<double> risk;
  std::string phase;
};

std::vector<std::string> split_words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// The last step that the run has measured.
MetricValues measured(const std::string& run) {
  const std::filesystem::path where(run);
  Problems problems;
  const auto steps = read_metrics(
      std::filesystem::is_directory(where) ? where / "metrics.jsonl" : where, problems);
  if (!steps) throw Error(std::move(problems));
  if (steps->empty()) throw Error(ExitCode::bad_input, run + ": no step has been measured yet");
  return {steps->back().data.begin(), steps->back().data.end()};
}

// 1 where a rule is violated: by a run every one that asks for something to be done, by a
// prediction (a plan may use all that it has) those that would end or halt its run.
bool fails(const JudgedRule& each, bool measured) {
  const RuleAction action = each.rule->action;
  const bool ends =
      action == RuleAction::stop || action == RuleAction::roll_back || action == RuleAction::pause;
  return each.verdict.outcome == RuleOutcome::violated &&
         (measured ? action != RuleAction::none : ends);
}

// What was asked, by name; printed as it comes, JSON as one document.
class Answers {
 public:
  explicit Answers(bool json) : json_(json) {}

  void add(const std::string& name, const std::string& text) {
    if (json_) {
      parts_.emplace_back(name, text);
    } else {
      std::printf("%s", text.c_str());
    }
  }

  // One answer stands alone; of several each under its name, choices in a list.
  void print() const {
    if (!json_ || parts_.empty()) return;
    if (parts_.size() == 1) {
      std::printf("%s", parts_.front().second.c_str());
      return;
    }
    std::string out, choices;
    for (const auto& [name, text] : parts_) {
      std::string& list = name == "why_not" ? choices : out;
      if (!list.empty()) list += ",\n";
      list += name == "why_not" ? text : "\"" + name + "\": " + text;
    }
    if (!choices.empty()) out += (out.empty() ? "" : ",\n") + ("\"why_not\": [" + choices + "]");
    std::printf("{%s}\n", out.c_str());
  }

 private:
  bool json_;
  std::vector<std::pair<std::string, std::string>> parts_;
};

std::string number_text(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", number);
  return text.data();
}

int explain_rules(const Plan& plan, const ExplainOptions& options, const Calibration& calibration,
                  Answers& answers) {
  Problems problems;
  const auto profile = read_rules(options.rules, problems);
  if (!profile) throw Error(std::move(problems));
  const bool runs = !options.run.empty();
  const MetricValues step = runs ? measured(options.run) : MetricValues{};
  const RunExpectation held = runs
                                  ? expectation_of_run(plan, calibration, ranks_on_processors(step))
                                  : RunExpectation{expectation_of(plan, calibration)};
  const auto judged = judge(*profile, runs ? step : held.expectation.predicted, held.expectation);
  answers.add("rules", options.json ? to_json(*profile, judged) : describe(*profile, judged));
  const std::string why_not_times = why_times_are_not_judged(held.rough, plan);
  if (!options.json && !why_not_times.empty()) {
    answers.add("times", "  predicted times are not judged: " + why_not_times + "\n");
  }
  const bool failed = std::any_of(judged.begin(), judged.end(),
                                  [&](const JudgedRule& each) { return fails(each, runs); });
  return static_cast<int>(failed ? ExitCode::check_failed : ExitCode::ok);
}

void explain_plan(const Plan& plan, const ExplainOptions& options, const Calibration& calibration,
                  Answers& answers) {
  const auto reshards = reshard_limits(plan, calibration);
  if (options.json) {
    answers.add("plan",
                explain_json(plan, calibration, reshards, on_other_types(plan, calibration)));
    return;
  }
  answers.add("plan", tessera::explain(plan, calibration, reshards));
  answers.add("types", describe_type_reasons(plan, calibration));
}

void explain_memory(const Plan& plan, const ExplainOptions& options, const Calibration& calibration,
                    Answers& answers) {
  Problems problems;
  MemoryQuestion question{.rank = options.rank, .risk = options.risk};
  if (!options.phase.empty()) {
    question.phase = phase_from(options.phase);
    if (!question.phase) {
      std::vector<std::string> names;
      for (const Phase phase : kEveryPhase) names.emplace_back(name_of(phase));
      problems.push_back({"--phase", "", "'" + options.phase + "'", "one of " + joined(names),
                          did_you_mean(options.phase, names)});
      throw Error(std::move(problems));
    }
  }
  const auto account = memory_account(plan, calibration, question, problems);
  if (!account) throw Error(std::move(problems));
  answers.add("memory", options.json ? to_json(*account) : describe(*account));
}

// Everything that was asked of a plan whose figures are its own.
int answer(const Plan& plan, const ExplainOptions& options, const Calibration& calibration,
           Answers& answers) {
  if (options.memory) explain_memory(plan, options, calibration, answers);
  const bool asked = !options.why_not.empty() || !options.rules.empty() || options.advice;
  if (!asked && !options.memory) explain_plan(plan, options, calibration, answers);
  if (!asked && (options.memory || !options.risk)) return 0;
  PlanRequest request = request_of(plan, calibration);
  if (options.risk) request.risk = *options.risk;
  std::vector<std::string> choices = options.why_not;
  if (!asked) choices.emplace_back();  // any plan under the other risk
  for (const std::string& choice : choices) {
    Problems problems;
    auto answer = [&] {
      const Progress progress("searching again");
      return why_not(plan, request, split_words(choice), problems);
    }();
    if (!answer) throw Error(std::move(problems));
    if (options.risk) answer->choice.push_back("--risk " + number_text(*options.risk));
    answers.add("why_not", options.json ? to_json(*answer) : describe(*answer, plan));
  }
  if (options.advice) {
    const Advice advice = [&] {
      const Progress progress("pricing the ladder");
      return advice_for(plan, request);
    }();
    answers.add("advice", options.json ? to_json(advice) : describe(advice));
  }
  return options.rules.empty() ? 0 : explain_rules(plan, options, calibration, answers);
}

int run_explain(const ExplainOptions& options) {
  for (const std::string& choice : options.why_not) {
    if (!split_words(choice).empty()) continue;
    throw Error(ExitCode::usage, {Problem{"--why-not", "", "nothing", "ROLE.FIELD=VALUE ...",
                                          "for example rollout.tp=8"}});
  }
  const Plan plan = read_plan_or_throw(options.plan);
  if (!options.run.empty()) refuse_run_of_other_plan(plan, options.plan, options.run);
  const Calibration calibration = calibration_of(plan, options.calibration);
  Answers answers(options.json);
  if (certified(plan) == Certified::yes) {
    const int code = answer(plan, options, calibration, answers);
    answers.print();
    return code;
  }
  Problems problems;
  check_reshard_digests(plan, options.plan, problems);
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
  const Repriced priced = repriced(plan, calibration);
  answers.add("repriced", options.json ? to_json(priced) : describe(priced));
  const int code = answer(priced.plan, options, calibration, answers);
  answers.print();
  if (!priced.pricing.fits) return static_cast<int>(ExitCode::infeasible);
  return priced.agrees() ? code : static_cast<int>(ExitCode::check_failed);
}

}  // namespace

void add_explain(CLI::App& app) {
  CLI::App* command = app.add_subcommand("explain", "Say what limits a plan and what it beat");
  auto options = std::make_shared<ExplainOptions>();
  command->add_option("plan", options->plan, "plan.json")->required();
  command->add_option("--why-not", options->why_not,
                      "A choice, e.g. 'rollout.tp=8 actor.pp=1': what it costs, or why it fails");
  command->add_flag("--advice", options->advice, "Practice's ladder and advice, each step priced");
  CLI::Option* const memory = command->add_flag(
      "--memory", options->memory, "The account of memory of a rank and phase, class by class");
  command->add_option("--rank", options->rank, "The rank of --memory; default: the fullest")
      ->needs(memory);
  command->add_option("--phase", options->phase, "Its phase; default: where the rank holds most")
      ->needs(memory);
  command->add_option("--rules", options->rules, "Rule file or preset, judged on the prediction");
  command->add_option("--run", options->run, "Judge the rules on this run's last step instead");
  command->add_option("--calibration", options->calibration,
                      "Calibration JSON or preset; default: the plan's");
  const auto risk = std::make_shared<double>(kDefaultRisk);
  const CLI::Option* const other = add_risk(*command, *risk);
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options, risk, other] {
    if (other->count() > 0) options->risk = *risk;
    const int code = run_explain(*options);
    if (code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace tessera
