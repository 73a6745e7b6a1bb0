// The models, clusters and calibrations that the rows of a sweep name, each read once.
//
// Names are paths relative to the CSV's folder or presets. Plain values after construction; any
// number of threads may read.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "cost_models/calibration.h"
#include "cost_models/documents/problem_list.h"
#include "planner/plan/model_source.h"
#include "planner/request/risk.h"
#include "planner/sweep/sweep_row.h"

namespace tessera {

struct SweepCluster {
  ClusterSpec spec;
  Calibration calibration;
};

struct SweepInputs {
  std::map<std::string, ModelSource, std::less<>> models;
  std::map<std::string, SweepCluster, std::less<>> clusters;
  double risk = kDefaultRisk;  // that a feasible row may run out of memory with
};

/// `calibration`: a file or preset for every cluster; empty = the one shipped for its device, or
/// derived from the nearest one. nullopt and Problems (each name once, at its first row).
std::optional<SweepInputs> read_sweep_inputs(std::span<const SweepRow> rows,
                                             const std::filesystem::path& folder,
                                             const std::string& file,
                                             const std::string& calibration, Problems& problems);

}  // namespace tessera
