#include "simulator/learn/learned_report.h"

#include <algorithm>
#include <cmath>

#include "cost_models/documents/printed.h"
#include "cost_models/documents/strict_json.h"
#include "cost_models/lengths.h"
#include "simulator/learn/run_comparison.h"

namespace tessera {
namespace {

constexpr double kAgrees = 1.5;  // root mean square of phases' errors over their deviations

std::string percent(double predicted, double measured) {
  return measured > 0 ? printed("%+.1f%%", (predicted / measured - 1) * 100) : "-";
}

std::string names_of(const LearnedRuns& result, ConstantFate fate) {
  std::string names;
  for (const LearnedConstant& each : result.learned.constants) {
    if (each.fate != fate) continue;
    names += (names.empty() ? "" : ", ") + each.name;
    if (fate == ConstantFate::not_told_apart) names += " (from " + each.beside + ")";
    if (fate == ConstantFate::agrees) names += printed(" (+-%.0f%%)", each.error * 100);
  }
  return names;
}

// Words in lines of at most 110 columns.
std::string wrapped(const std::string& text) {
  std::string out, row = " ";
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find(", ", at), text.size());
    const std::string word = text.substr(at, end - at) + (end < text.size() ? "," : "");
    if (row.size() + 1 + word.size() > 110) {
      out += row + "\n";
      row = " ";
    }
    row += " " + word;
    at = end + 2;
  }
  return out + row + "\n";
}

std::string peak_text(const LearnedConstant& rate) {
  const bool within = rate.after * (1 - rate.error) <= rate.peak;
  return printed(
      "  above the %.4g that the device is stated to reach%s\n", rate.peak,
      within ? ", within its error bar" : ": likely the run did less work than its plan has");
}

std::string none_moved(const LearnedRuns& result) {
  const bool timed = std::any_of(result.runs.begin(), result.runs.end(),
                                 [](const FittedRun& run) { return run.phases.size() > 1; });
  if (!timed) return "no constant moved: the runs time no phase of their plans\n";
  if (result.learned.spread_before <= kAgrees) {
    return "no constant moved: the phases agree with the calibration as it is\n";
  }
  return "no constant moved: none explains how far the phases are off\n";
}

std::string constants_text(const LearnedRuns& result) {
  std::string text = printed("%-22s %12s %12s %9s %8s\n", "constant that moved", "before", "after",
                             "factor", "+-");
  bool any = false;
  for (const LearnedConstant& each : result.learned.constants) {
    if (each.fate != ConstantFate::moved) continue;
    any = true;
    text += printed("%-22s %12.4g %12.4g %9.3f %7.1f%%\n", each.name.c_str(), each.before,
                    each.after, each.after / each.before, each.error * 100);
    if (each.too_far()) {
      text +=
          "  further than constants of its kind go: likely a cost that the model does not have\n";
    }
    if (each.above_peak()) text += peak_text(each);
  }
  if (!any) text = none_moved(result);
  const auto left = [&](ConstantFate fate, const char* why) {
    const std::string names = names_of(result, fate);
    if (!names.empty()) text += std::string(why) + "\n" + wrapped(names);
  };
  left(ConstantFate::agrees, "left, as the phases agree with them:");
  left(ConstantFate::not_told_apart, "left, as the phases do not tell them apart:");
  left(ConstantFate::open, "left, as the phases say too little of them:");
  left(ConstantFate::without_effect, "left, as no phase depends on them:");
  return text;
}

std::string phases_text(const std::vector<FittedPhase>& phases) {
  std::string text;
  for (const FittedPhase& each : phases) {
    text += printed("  %-16s %10.3f s %8.3f s %10.3f s %8s %10.3f s %8s\n", each.what.c_str(),
                    each.measured_s, each.deviation_s, each.before_s,
                    percent(each.before_s, each.measured_s).c_str(), each.after_s,
                    percent(each.after_s, each.measured_s).c_str());
  }
  return text;
}

std::string heading() {
  return printed("  %-16s %12s %10s %12s %8s %12s %8s\n", "", "measured", "+-", "before", "error",
                 "after", "error");
}

std::string waits_text(const FittedRun& run) {
  std::string text;
  for (const Phase phase : run.waits) {
    text += "  " + std::string(name_of(phase)) +
            ": left out, as the log has the trainer's wait for it, not its time\n";
  }
  return text;
}

std::string lengths_text(const FittedRun& run) {
  std::string text;
  if (run.prompt_mean > 0) {
    text = printed("  prompts: mean %.0f tokens, planned %lld\n", run.prompt_mean,
                   static_cast<long long>(run.planned_prompt));
  }
  if (!run.lengths_measured) return text + "  lengths: not measured, the plan's\n";
  const LengthSpec& now = run.lengths;
  text += printed("  responses: mean %.0f tokens of at most %lld, planned %.0f", mean_length(now),
                  static_cast<long long>(now.max), mean_length(run.planned_lengths));
  return text + printed("; as a workload: {mean: %.0f, cv: %.2f, max: %lld}\n", now.mean, now.cv,
                        static_cast<long long>(now.max));
}

std::string memory_text(const LearnedMemory& memory) {
  if (memory.runs == 0) {
    return "fragmentation is left: no run says what its allocator reserved\n";
  }
  return printed(
      "fragmentation: %.2f%% of the device before, %.2f%% +- %.0f%% of it after (%d run%s)\n",
      memory.before * 100, memory.after * 100, memory.error * 100, memory.runs,
      memory.runs == 1 ? "" : "s");
}

std::string percent_of(double part) { return printed("%.1f%%", part * 100); }

}  // namespace

std::string worth_text(const LearnedRuns& result) {
  const HeldOutError error = held_out_error(result.held_out);
  const std::string off = "the steps held out are " + percent_of(error.after) + " off with it, " +
                          percent_of(error.before) + " before";
  switch (worth_of(result)) {
    case LessonWorth::better:
      return "worth using: " + off;
    case LessonWorth::no_better:
      return "not worth using: " + off;
    case LessonWorth::nothing:
      return "nothing to use: no constant moved";
    case LessonWorth::untold:
      return "not known to be worth using: nothing is held out";
    case LessonWorth::noise:
      break;
  }
  const FittedRun& run = *noisy_run(result);
  return "noise, not worth using: steps of " + run.name + " differ by " + percent_of(run.scatter) +
         " among themselves, as ranks share the processors with one another and with whatever "
         "else runs there";
}

namespace {

Node node_of(const std::vector<FittedPhase>& phases) {
  Node list = list_node();
  for (const FittedPhase& each : phases) {
    Node node = map_node();
    add(node, "what", tessera::node_of(std::string_view(each.what)));
    add(node, "measured_s", tessera::node_of(each.measured_s));
    add(node, "deviation_s", tessera::node_of(each.deviation_s));
    add(node, "before_s", tessera::node_of(each.before_s));
    add(node, "after_s", tessera::node_of(each.after_s));
    list.items.push_back(std::move(node));
  }
  return list;
}

Node node_of(const LengthSpec& lengths) {
  Node node = map_node();
  add(node, "mean", tessera::node_of(lengths.mean));
  add(node, "cv", tessera::node_of(lengths.cv));
  add(node, "max", tessera::node_of(lengths.max));
  return node;
}

Node node_of(const LearnedConstant& each) {
  Node node = map_node();
  add(node, "name", tessera::node_of(std::string_view(each.name)));
  add(node, "fate", tessera::node_of(name_of(each.fate)));
  add(node, "before", tessera::node_of(each.before));
  add(node, "after", tessera::node_of(each.after));
  add(node, "error", tessera::node_of(each.error));
  add(node, "too_far", tessera::node_of(each.too_far()));
  add(node, "above_peak", tessera::node_of(each.above_peak()));
  if (!each.beside.empty()) add(node, "beside", tessera::node_of(std::string_view(each.beside)));
  return node;
}

Node node_of(const FittedRun& run) {
  Node node = map_node();
  add(node, "run", tessera::node_of(std::string_view(run.name)));
  add(node, "steps", tessera::node_of(run.steps));
  add(node, "warm_up", tessera::node_of(static_cast<std::int64_t>(run.warm_up)));
  add(node, "of_other_plans", tessera::node_of(static_cast<std::int64_t>(run.of_other_plans)));
  add(node, "scatter", tessera::node_of(run.scatter));
  add(node, "lengths_measured", tessera::node_of(run.lengths_measured));
  add(node, "lengths", node_of(run.lengths));
  add(node, "phases", node_of(run.phases));
  return node;
}

}  // namespace

std::string to_text(const LearnedRuns& result) {
  std::string text = worth_text(result) + "\n\n";
  for (const FittedRun& run : result.runs) {
    text += printed("%s: %lld steps, %zu left out as warm-up\n", run.name.c_str(),
                    static_cast<long long>(run.steps), run.warm_up);
    text += other_plans_line(run.of_other_plans);
    text += heading() + phases_text(run.phases) + waits_text(run) + lengths_text(run);
    if (run.lengths_measured) {
      text += "  before and after: at these lengths; the plan's own prediction is at its own\n";
    }
  }
  text += "\n" + constants_text(result) + memory_text(result.memory);
  text += printed("phases are off by %.1f of their deviations before, %.1f after\n",
                  result.learned.spread_before, result.learned.spread_after);
  if (result.held_out.empty()) return text + "nothing is held out: one run of one step\n";
  text += "\nheld out, learned from the rest\n" + heading();
  for (const HeldOut& part : result.held_out) {
    text += part.run + "\n" + phases_text(part.phases);
  }
  const HeldOutError error = held_out_error(result.held_out);
  return text + printed("mean error of the steps held out: %.1f%% before, %.1f%% after\n",
                        error.before * 100, error.after * 100);
}

std::string to_json(const LearnedRuns& result) {
  Node root = map_node();
  Node constants = list_node(), runs = list_node(), held_out = list_node();
  for (const LearnedConstant& each : result.learned.constants) {
    constants.items.push_back(node_of(each));
  }
  for (const FittedRun& run : result.runs) runs.items.push_back(node_of(run));
  for (const HeldOut& part : result.held_out) {
    Node node = map_node();
    add(node, "run", tessera::node_of(std::string_view(part.run)));
    add(node, "phases", node_of(part.phases));
    held_out.items.push_back(std::move(node));
  }
  Node memory = map_node();
  add(memory, "runs", tessera::node_of(result.memory.runs));
  add(memory, "fragmentation_before", tessera::node_of(result.memory.before));
  add(memory, "fragmentation_after", tessera::node_of(result.memory.after));
  add(memory, "error", tessera::node_of(result.memory.error));
  const HeldOutError error = held_out_error(result.held_out);
  Node errors = map_node();
  add(errors, "before", tessera::node_of(error.before));
  add(errors, "after", tessera::node_of(error.after));
  add(root, "worth", tessera::node_of(name_of(worth_of(result))));
  add(root, "constants", std::move(constants));
  add(root, "spread_before", tessera::node_of(result.learned.spread_before));
  add(root, "spread_after", tessera::node_of(result.learned.spread_after));
  add(root, "memory", std::move(memory));
  add(root, "runs", std::move(runs));
  add(root, "held_out", std::move(held_out));
  add(root, "held_out_step_error", std::move(errors));
  return json_text(root);
}

}  // namespace tessera
