// tessera sweep: a prediction for every row of a CSV of fixed layouts.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "cli/commands.h"
#include "cost_models/spec/document.h"
#include "planner/sweep/sweep.h"

namespace tessera {
namespace {

struct SweepOptions {
  std::string input, output, calibration;
};

void run_sweep(const SweepOptions& options) {
  Problems problems;
  std::optional<CsvTable> table = read_csv_as_far(options.input, problems);
  std::optional<SweepSummary> summary;
  if (table) {
    summary = sweep(*table, std::filesystem::path(options.input).parent_path(), options.calibration,
                    problems);
  }
  if (!summary || !problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
  if (options.output.empty() || options.output == "-") {
    std::printf("%s", to_csv(*table).c_str());
  } else {
    write_text_file(options.output, to_csv(*table));
  }
  std::fprintf(stderr, "sweep: %zu rows, %zu of them feasible\n", summary->rows, summary->feasible);
}

}  // namespace

void add_sweep(CLI::App& app) {
  CLI::App* command = app.add_subcommand("sweep", "Predict every row of a CSV of fixed layouts");
  auto options = std::make_shared<SweepOptions>();
  command->add_option("input", options->input, "CSV: one row = one fixed layout and workload")
      ->required();
  command->add_option("-o,--output", options->output, "Where to write; default: stdout");
  command->add_option("--calibration", options->calibration,
                      "Calibration JSON or preset for every row; default: the device's");
  command->callback([options] { run_sweep(*options); });
}

}  // namespace tessera
