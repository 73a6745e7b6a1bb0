#include "cli/measured_runs.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <limits>
#include <utility>

#include "cli/inputs.h"
#include "cli/numbers.h"
#include "cost_models/documents/document.h"
#include "cost_models/documents/problem.h"
#include "planner/interop/import.h"
#include "planner/interop/price.h"
#include "planner/interop/read_config.h"
#include "simulator/learn/learned_runs.h"
#include "simulator/timeline/metrics.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestScript = std::size_t{1} << 20;  // bytes

// A plan, and the script that it was read from.
struct RanPlan {
  Plan plan;
  std::optional<ConfigValues> script;
};

// A script of verl as the plan that it runs.
RanPlan imported_plan(const std::string& file, const RunNames& names) {
  Problems problems;
  if (names.cluster.empty()) {
    throw Error(ExitCode::usage,
                {Problem{"--cluster", "", "nothing", "the cluster that " + file + " ran on",
                         "a cluster YAML or preset"}});
  }
  const auto text = read_text_file(file, kLongestScript, problems);
  const auto cluster = read_cluster_spec(names.cluster, problems);
  if (!text || !cluster) throw Error(ExitCode::bad_input, std::move(problems));
  auto script = read_config_values(*text, file, problems);
  if (!script) throw Error(ExitCode::bad_input, std::move(problems));
  auto imported = import_config(*script, {.cluster = with_nodes(*cluster, names.nodes)}, problems);
  if (!imported) throw Error(ExitCode::bad_input, std::move(problems));
  price(imported->plan, calibration_for(imported->plan.cluster, names.calibration),
        imported->memory_share);
  return {std::move(imported->plan), std::move(script)};
}

RanPlan plan_at(const std::string& file, const RunNames& names) {
  const std::string ending = fs::path(file).extension();
  const bool script = ending == ".sh" || ending == ".yaml" || ending == ".yml";
  return script ? imported_plan(file, names) : RanPlan{read_plan_or_throw(file), std::nullopt};
}

// The run's own plan where none is named.
std::string plan_file_of(const RunNames& names, std::size_t index) {
  if (names.plans.size() == 1) return names.plans.front();
  if (!names.plans.empty()) return names.plans[index];
  if (auto own = plan_file_of_run(names.runs[index])) return *own;
  throw Error(ExitCode::bad_input,
              {Problem{names.runs[index], "plan.json", "no plan beside the metrics",
                       "--plan with the plan.json or the script that ran", ""}});
}

}  // namespace

void add_plans_option(CLI::App& command, RunNames& names) {
  command.add_option("--plan", names.plans,
                     "plan.json or verl script that ran: one for all runs, or one for each; "
                     "default: the plan.json beside the metrics");
}

void add_reading_options(CLI::App& command, RunNames& names) {
  command.add_option("--cluster", names.cluster, "Cluster YAML or preset of scripts");
  add_nodes(command, names.nodes);
  command.add_option("--calibration", names.calibration,
                     "Calibration JSON or preset instead of the plan's");
  command
      .add_option("--warm-up", names.warm_up,
                  "Steps to leave out at the start; default: the first, and those behind it that "
                  "took over 1.25 times the median of later ones")
      ->check(whole_number(0, std::numeric_limits<int>::max()));
}

NamedRuns read_measured_runs(const RunNames& names) {
  if (names.plans.size() > 1 && names.plans.size() != names.runs.size()) {
    throw Error(
        ExitCode::usage,
        {Problem{"--plan", "", std::to_string(names.plans.size()) + " plans",
                 "one, or one for each of " + std::to_string(names.runs.size()) + " runs", ""}});
  }
  NamedRuns read;
  for (std::size_t i = 0; i < names.runs.size(); ++i) {
    const fs::path where(names.runs[i]);
    const fs::path file = fs::is_directory(where) ? where / "metrics.jsonl" : where;
    const std::string plan_file = plan_file_of(names, i);
    RanPlan ran = plan_at(plan_file, names);
    refuse_run_of_other_plan(ran.plan, plan_file, names.runs[i]);
    Problems problems;
    auto steps = read_metrics(file, problems, is_compared);
    if (!steps) throw Error(ExitCode::bad_input, std::move(problems));
    const std::optional<std::size_t> warm_up =
        names.warm_up < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(names.warm_up));
    auto run =
        measured_run(names.runs[i], std::move(ran.plan), *std::move(steps), warm_up, problems);
    if (!run) throw Error(ExitCode::bad_input, std::move(problems));
    read.runs.push_back(*std::move(run));
    if (i == 0) read.script = std::move(ran.script);
  }
  return read;
}

Calibration base_calibration(const std::vector<MeasuredRun>& runs, const RunNames& names) {
  const std::string& device = runs.front().plan.cluster.device.name;
  for (const MeasuredRun& run : runs) {
    if (auto problem = unlearnable(run)) throw Error(ExitCode::bad_input, {*std::move(problem)});
    if (run.plan.cluster.device.name == device) continue;
    throw Error(ExitCode::bad_input,
                {Problem{run.name, "cluster", "'" + run.plan.cluster.device.name + "'",
                         "runs on devices of one kind: '" + device + "'",
                         "learn one calibration for each kind of device"}});
  }
  return calibration_of(runs.front().plan, names.calibration);
}

}  // namespace tessera
