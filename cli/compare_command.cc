// tessera compare: a plan's prediction beside what its run measured.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/numbers.h"
#include "cost_models/documents/problem.h"
#include "planner/plan/plan.h"
#include "simulator/timeline/comparison.h"
#include "simulator/timeline/metrics.h"
#include "simulator/timeline/wire_options.h"

namespace tessera {
namespace {

struct CompareOptions {
  std::string plan, run;
  int warm_up = 2;
  bool json = false;
};

int compare_run(const CompareOptions& options) {
  const Plan plan = read_plan_or_throw(options.plan);
  const std::filesystem::path run(options.run);
  const std::filesystem::path file =
      std::filesystem::is_directory(run) ? run / "metrics.jsonl" : run;
  refuse_run_of_other_plan(plan, options.plan, options.run);
  Problems problems;
  const std::optional<std::vector<StepNumbers>> steps = read_metrics(file, problems);
  const WireOptions switches = read_wire_options(run, problems);
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
  if (steps->empty()) throw Error(ExitCode::bad_input, file.string() + ": no step was measured");
  const Comparison result = compare(plan, *steps, options.warm_up, switches);
  std::printf("%s", (options.json ? to_json(result) : to_text(result)).c_str());
  for (const BytesComparison& bytes : result.bytes) {
    if (!bytes.agrees()) return static_cast<int>(ExitCode::check_failed);
  }
  return 0;
}

}  // namespace

void add_compare(CLI::App& app) {
  CLI::App* command = app.add_subcommand("compare", "Set prediction beside measurement");
  auto options = std::make_shared<CompareOptions>();
  command->add_option("plan", options->plan, "plan.json")->required();
  command->add_option("run", options->run, "Folder of the run, or its metrics.jsonl")->required();
  command->add_option("--warm-up", options->warm_up, "Steps to leave out of the means")
      ->check(whole_number(0, std::numeric_limits<int>::max()));
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] {
    const int code = compare_run(*options);
    if (code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace tessera
