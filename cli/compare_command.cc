// tessera compare: a plan's prediction beside what its run measured.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/measured_runs.h"
#include "cost_models/documents/problem.h"
#include "simulator/learn/run_comparison.h"
#include "simulator/timeline/wire_options.h"

namespace tessera {
namespace {

struct CompareCommand {
  std::string plan, run;
  RunNames names;
  bool json = false;
};

int compare_command(CompareCommand command) {
  command.names.runs = {command.run};
  command.names.plans = {command.plan};
  const MeasuredRun run = read_measured_runs(command.names).runs.front();
  Problems problems;
  const WireOptions switches = read_wire_options(command.run, problems);
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
  const Calibration calibration = calibration_of(run.plan, command.names.calibration);
  const RunComparison result = compare_run(run, calibration, switches);
  std::printf("%s", (command.json ? to_json(result) : to_text(result)).c_str());
  for (const BytesComparison& bytes : result.times.bytes) {
    if (!bytes.agrees()) return static_cast<int>(ExitCode::check_failed);
  }
  return 0;
}

}  // namespace

void add_compare(CLI::App& app) {
  CLI::App* command = app.add_subcommand("compare", "Set prediction beside measurement");
  auto all = std::make_shared<CompareCommand>();
  command->add_option("plan", all->plan, "plan.json, or the verl script that ran")->required();
  command
      ->add_option("run", all->run,
                   "Folder of the run, or metrics: metrics.jsonl, verl's JSONL or console log")
      ->required();
  add_reading_options(*command, all->names);
  command->add_flag("--json", all->json, "Print JSON");
  command->callback([all] {
    const int code = compare_command(*all);
    if (code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace tessera
