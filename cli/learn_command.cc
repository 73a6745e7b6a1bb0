// tessera learn: constants refitted from runs that were measured.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/measured_runs.h"
#include "cost_models/documents/utc_now.h"
#include "simulator/learn/learned_report.h"

namespace tessera {
namespace {

struct LearnCommand {
  RunNames names;
  std::string output;
  bool json = false;
};

void learn(const LearnCommand& command) {
  const std::vector<MeasuredRun> runs = read_measured_runs(command.names).runs;
  const Calibration base = base_calibration(runs, command.names);
  LearnedRuns learned = learn_from_runs(runs, base);
  if (!command.output.empty()) {
    Calibration& calibration = learned.learned.calibration;
    calibration.name = base.name + ", learned from " + std::to_string(runs.size()) +
                       (runs.size() == 1 ? " run" : " runs");
    calibration.created = utc_now();
    write_calibration(calibration, command.output);
    std::fprintf(stderr, "learn: written to %s\n", command.output.c_str());
  }
  std::printf("%s", (command.json ? to_json(learned) : to_text(learned)).c_str());
}

}  // namespace

void add_learn(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("learn", "Refit a calibration from the measured phases of runs");
  auto all = std::make_shared<LearnCommand>();
  command
      ->add_option("runs", all->names.runs,
                   "Folders of runs, or metrics: metrics.jsonl, verl's JSONL or console log")
      ->required();
  add_plans_option(*command, all->names);
  add_reading_options(*command, all->names);
  command->add_option("-o,--output", all->output, "Where to write the calibration");
  command->add_flag("--json", all->json, "Print JSON");
  command->callback([all] { learn(*all); });
}

}  // namespace tessera
