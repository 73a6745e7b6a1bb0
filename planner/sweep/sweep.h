// A table of fixed layouts in, the same table with a prediction beside every row out.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cost_models/documents/csv.h"
#include "cost_models/documents/problem_list.h"
#include "planner/request/risk.h"
#include "planner/sweep/price.h"

namespace tessera {

struct SweepSummary {
  std::size_t rows = 0, feasible = 0;
  std::vector<std::string> kept;  // columns that are not read
};

/// Adds (or refreshes, where the table has them already) the columns step_s, gen_s, reshard_s,
/// log_prob_s, update_s, tokens_per_s_per_gpu, mfu, peak_gib, fits (the probability), feasible (0
/// or 1: fits with at least 1 - risk) and why; all other columns stay as they are. nullopt and
/// Problems when a row, model or cluster does not read.
/// `search` answers rows of iterations.
std::optional<SweepSummary> sweep(CsvTable& table, const std::filesystem::path& folder,
                                  const std::string& calibration, const RowSearch& search,
                                  Problems& problems, double risk = kDefaultRisk);

}  // namespace tessera
