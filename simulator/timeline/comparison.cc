#include "simulator/timeline/comparison.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "cost_models/documents/printed.h"
#include "planner/plan/plan.h"
#include "simulator/timeline/measured_mean.h"
#include "simulator/timeline/measured_phase.h"
#include "simulator/timeline/step_order.h"

namespace tessera {
namespace {

std::string number_or_null(bool is_known, double value) {
  return is_known ? printed("%.17g", value) : "null";
}

// Every step by itself: a mean would hide one that moved too much beside one that moved too little.
BytesComparison compare_bytes(const Plan& plan, const PlannedReshard& pair,
                              const std::vector<StepNumbers>& run, size_t first,
                              const WireOptions& options) {
  BytesComparison result{
      .what = "reshard " + std::string(name_of(pair.from)) + " -> " + std::string(name_of(pair.to)),
      .at_most = options.incremental};
  double predicted = 0, measured = 0;
  for (size_t i = first; i < run.size(); ++i) {
    const std::int64_t foreseen = reshard_bytes(plan, pair, options, run[i].step);
    const auto found = run[i].data.find("reshard/bytes");
    const bool counted = found != run[i].data.end();
    const std::int64_t moved = counted ? std::llround(found->second) : 0;
    predicted += static_cast<double>(foreseen);
    measured += static_cast<double>(moved);
    const bool agrees = counted && (options.incremental ? moved <= foreseen : moved == foreseen);
    if (!agrees) ++result.steps_apart;
  }
  const double steps = static_cast<double>(std::max<size_t>(1, run.size() - first));
  result.predicted = run.empty() ? pair.bytes_received.value : std::llround(predicted / steps);
  result.measured = std::llround(measured / steps);
  return result;
}

}  // namespace

std::string verdict(const BytesComparison& bytes) {
  if (bytes.agrees()) return bytes.at_most ? "within" : "equal";
  return std::string(bytes.at_most ? "MORE" : "NOT EQUAL") + " in " +
         std::to_string(bytes.steps_apart) + (bytes.steps_apart == 1 ? " step" : " steps");
}

Comparison compare(const Plan& plan, const std::vector<StepNumbers>& numbers, int warm_up,
                   const WireOptions& options) {
  std::vector<StepNumbers> run;
  for (LoggedStep& step : in_order(numbers)) run.push_back(std::move(step.numbers));
  std::erase_if(run, [](const StepNumbers& step) { return step.step == 0; });  // no step: validated
  const size_t first = run.empty() ? 0 : std::min<size_t>(warm_up, run.size() - 1);
  Comparison result;
  result.steps = static_cast<std::int64_t>(run.size() - first);
  const auto counted = std::span(run).subspan(first);
  const std::vector<double> seconds = step_seconds(counted);
  const PhaseTime step{mean_of(seconds), std::ssize(seconds), std::ssize(seconds)};
  const auto add = [&](const std::string& phase, double predicted, const PhaseTime& measured) {
    const double step_s = step.seconds.mean;
    result.phases.push_back({.phase = phase,
                             .predicted_s = predicted,
                             .measured_s = measured.seconds.mean,
                             .measured_deviation_s = measured.seconds.deviation,
                             .share = step_s > 0 ? measured.per_step() / step_s : 0,
                             .timed = measured.timed > 0,
                             .timed_steps = measured.timed});
  };
  for (const Phase phase : kEveryPhase) {
    const std::string name(name_of(phase));
    const auto predicted = plan.prediction.phases_s.find(phase);
    const auto measured = phase_time(counted, phase);
    const bool known = predicted != plan.prediction.phases_s.end();
    if (!known && !measured) continue;
    add(name, known ? predicted->second : Seconds{}, measured.value_or(PhaseTime{}));
  }
  add("step", plan.prediction.step_s, step);
  // Software that counts no bytes (verl) says nothing of them.
  const bool counts = run.empty() || std::any_of(run.begin(), run.end(), [](const auto& each) {
                        return each.data.contains("reshard/bytes");
                      });
  for (const PlannedReshard& pair : plan.reshard) {
    if (!counts) break;
    result.bytes.push_back(compare_bytes(plan, pair, run, first, options));
  }
  return result;
}

std::string in_some_steps(std::int64_t timed, std::int64_t steps) {
  if (timed <= 0 || timed >= steps) return {};
  return "in " + std::to_string(timed) + " of " + std::to_string(steps) + " steps";
}

std::string to_text(const Comparison& comparison) {
  std::string text = printed("%-16s %12s %10s %12s %10s %8s %8s\n", "phase", "predicted", "+-",
                             "measured", "+-", "share", "error");
  for (const PhaseComparison& row : comparison.phases) {
    text += printed("%-16s ", row.phase.c_str());
    text += row.is_predicted() ? printed("%10.2fms %8.2fms ", row.predicted_s * 1e3,
                                         row.predicted_deviation_s * 1e3)
                               : printed("%23s ", "not predicted");
    if (!row.timed) {
      text += "not measured\n";
      continue;
    }
    const bool small = row.share > 0 && row.share < 0.001;
    text += printed(small ? "%10.2fms %8.2fms %7.2f%% " : "%10.2fms %8.2fms %7.1f%% ",
                    row.measured_s * 1e3, row.measured_deviation_s * 1e3, row.share * 100);
    text += row.has_error() ? printed("%+7.1f%%", row.relative_error() * 100) : "       -";
    const bool step = &row == &comparison.phases.back();
    const std::string some = step ? "" : in_some_steps(row.timed_steps, comparison.steps);
    text += (some.empty() ? "" : "  " + some) + "\n";
  }
  for (const BytesComparison& row : comparison.bytes) {
    text += printed("%-28s %lld bytes predicted%s, %lld measured: %s\n", row.what.c_str(),
                    static_cast<long long>(row.predicted), row.at_most ? " at most" : "",
                    static_cast<long long>(row.measured), verdict(row).c_str());
  }
  return text + printed("means over %lld steps\n", static_cast<long long>(comparison.steps));
}

std::string to_json(const Comparison& comparison) {
  std::string text = "{\n  \"steps\": " + std::to_string(comparison.steps) + ",\n  \"phases\": [";
  for (size_t i = 0; i < comparison.phases.size(); ++i) {
    const PhaseComparison& row = comparison.phases[i];
    const auto predicted = [&](double value) { return number_or_null(row.is_predicted(), value); };
    const auto measured = [&](double value) { return number_or_null(row.timed, value); };
    text += (i > 0 ? ",\n" : "\n") +
            printed(
                "    {\"phase\": \"%s\", \"predicted_s\": %s, \"predicted_deviation_s\": %s, "
                "\"predicted_communication_s\": %s, \"measured_s\": %s, "
                "\"measured_deviation_s\": %s, \"timed_steps\": %lld, \"share\": %s, "
                "\"relative_error\": %s}",
                row.phase.c_str(), predicted(row.predicted_s).c_str(),
                predicted(row.predicted_deviation_s).c_str(),
                predicted(row.predicted_communication_s).c_str(), measured(row.measured_s).c_str(),
                measured(row.measured_deviation_s).c_str(), static_cast<long long>(row.timed_steps),
                measured(row.share).c_str(),
                number_or_null(row.has_error(), row.relative_error()).c_str());
  }
  text += "\n  ],\n  \"bytes\": [";
  for (size_t i = 0; i < comparison.bytes.size(); ++i) {
    const BytesComparison& row = comparison.bytes[i];
    text += (i > 0 ? ",\n" : "\n") +
            printed(
                "    {\"what\": \"%s\", \"predicted\": %lld, \"measured\": %lld, \"at_most\": %s, "
                "\"steps_apart\": %lld, \"agrees\": %s}",
                row.what.c_str(), static_cast<long long>(row.predicted),
                static_cast<long long>(row.measured), row.at_most ? "true" : "false",
                static_cast<long long>(row.steps_apart), row.agrees() ? "true" : "false");
  }
  return text + "\n  ]\n}\n";
}

}  // namespace tessera
