// Runs that commands learn from: folders of Tessera's, and metrics or logs of verl with the plan or
// script that they ran.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cost_models/calibration.h"
#include "planner/interop/config/config_values.h"
#include "simulator/learn/measured_run.h"

namespace CLI {
class App;
}  // namespace CLI

namespace tessera {

struct RunNames {
  std::vector<std::string> runs;   // folders, metrics.jsonl, verl's JSONL or console log
  std::vector<std::string> plans;  // plan.json or a verl script: one for all, or one a run
  std::string cluster;             // of scripts
  std::int64_t nodes = 0;          // of that cluster; 0 = all that it has
  std::string calibration;         // empty = the plans'
  int warm_up = -1;                // -1 = by the rule
};

/// The options --cluster, --nodes, --calibration and --warm-up.
void add_reading_options(CLI::App& command, RunNames& names);
/// The option --plan.
void add_plans_option(CLI::App& command, RunNames& names);

/// The runs that are named, each with its plan.
struct NamedRuns {
  std::vector<MeasuredRun> runs;
  /// What the first run's plan was read from; nullopt where that is a plan.json.
  std::optional<ConfigValues> script;
};

/// Throws Error (bad_input).
NamedRuns read_measured_runs(const RunNames& names);

/// The constants that the runs are held against: those named, else those of the first run's plan.
/// Throws Error (bad_input) where the runs were on devices of several kinds, or of another than
/// their plans are for.
Calibration base_calibration(const std::vector<MeasuredRun>& runs, const RunNames& names);

}  // namespace tessera
