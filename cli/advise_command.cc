// tessera advise: what to change about a run that was measured.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/measured_runs.h"
#include "cli/progress.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/utc_now.h"
#include "planner/advice/run_advice.h"
#include "planner/interop/repriced.h"
#include "planner/plan/plan_json.h"
#include "simulator/learn/learned_report.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct AdviseCommand {
  RunNames names;
  std::string output;
  bool json = false;
};

void advise_command(const AdviseCommand& command) {
  const NamedRuns named = read_measured_runs(command.names);
  const std::vector<MeasuredRun>& runs = named.runs;
  const Calibration base = base_calibration(runs, command.names);
  const fs::path folder(command.output);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error(ExitCode::io, folder.string() + ": " + error.message());
  const LearnedRuns lesson = learn_from_runs(runs, base);
  if (is_poor(worth_of(lesson))) {
    std::fprintf(stderr, "advise: learned constants: %s; the changes are guesses\n",
                 worth_text(lesson).c_str());
  }
  Calibration learned = lesson.learned.calibration;
  learned.name = base.name + ", learned";
  learned.created = utc_now();
  const fs::path calibration = folder / "calibration.json", plan = folder / "plan.json";
  write_calibration(learned, calibration);
  write_plan(repriced(runs.front().plan, learned).plan, plan);
  const MeasuredRun& run = runs.front();
  const RunAdvice advice = [&] {
    const Progress progress("planning again");
    return advise(run.plan, Seconds{means_of(run).step.mean}, learned,
                  named.script ? &*named.script : nullptr);
  }();
  const std::string text = command.json ? to_json(advice, plan.string(), calibration.string())
                                        : to_text(advice, plan.string(), calibration.string());
  std::printf("%s", text.c_str());
}

}  // namespace

void add_advise(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("advise", "Rank changes of a run by what they would save of its step");
  auto all = std::make_shared<AdviseCommand>();
  command
      ->add_option("runs", all->names.runs,
                   "The run, and others to learn from: folders, or metrics as `learn` reads them")
      ->required();
  add_plans_option(*command, all->names);
  add_reading_options(*command, all->names);
  command
      ->add_option("-o,--output", all->output,
                   "Folder for the learned calibration.json, and for the run's plan.json with the "
                   "lengths that it measured, which the printed commands read")
      ->required();
  command->add_flag("--json", all->json, "Print JSON");
  command->callback([all] { advise_command(*all); });
}

}  // namespace tessera
