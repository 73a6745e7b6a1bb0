// How far a sweep's predictions are from what its rows measured.
//
// Pure functions over a swept table that has the columns of tests/validation/data/README.md. Errors
// are relative to the measurement; regret is what following the prediction costs against the best
// measured row of the same job.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost_models/documents/csv.h"

namespace tessera {

struct ScoredRow {
  std::size_t line = 0;
  std::string job;     // model, kind, GPUs, batch, lengths, type: what rows of one choice share
  std::string layout;  // the degrees, and the row's own label
  std::string fair;    // "1", "rank", "0"
  std::optional<double> measured, predicted;
  std::optional<double> measured_gib, predicted_gib;  // peak
  bool feasible = false;
  std::optional<bool> ran_out_of_memory;  // as measured
  std::string why;

  std::optional<double> error() const {
    if (!measured || !predicted) return std::nullopt;
    return *predicted / *measured - 1;
  }
};

/// One job with several measured layouts.
struct Choice {
  std::string job, chosen, best;
  double regret = 0;  // measured(chosen) / measured(best) - 1
};

struct Score {
  std::vector<ScoredRow> rows;  // all
  int compared = 0;             // rows with fair = 1 and a time
  double mean_error = 0, worst_error = 0;
  /// Rows with fair = "rank": scale = geometric mean of predicted / measured, error once it is
  /// divided out, and Spearman's rank correlation.
  int ranked = 0;
  double scale = 1, scaled_error = 0, rank_correlation = 0;
  int weighed = 0;  // rows with a measured peak and fair_memory = 1
  double memory_error = 0, memory_bias = 0;
  std::vector<Choice> choices;
  double mean_regret = 0;
  int accepted_but_ran_out = 0;  // feasible though measured to run out of memory
  int refused_but_ran = 0;       // infeasible though it ran
};

/// `match`: rows whose column `column` is that text only; empty column = all.
Score score_of(const CsvTable& swept, const std::string& column = "",
               const std::string& match = "");

/// A line per row, then mean, worst, scale, regret per job and memory verdicts.
std::string describe(const std::string& title, const Score& score);

}  // namespace tessera
