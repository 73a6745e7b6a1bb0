#include "tests/validation/score.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>

namespace tessera {
namespace {

template <class... Values>
std::string text(const char* format, Values... values) {
  std::array<char, 400> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, values...);
  return buffer.data();
}

std::string cell(const CsvTable& table, const CsvRow& row, std::string_view name) {
  const auto column = table.column(name);
  return column ? row.cells[*column] : "";
}

std::optional<double> number(const std::string& cell) {
  if (cell.empty()) return std::nullopt;
  return std::strtod(cell.c_str(), nullptr);
}

std::string model_name(const std::string& path) {
  std::string name = path;
  if (name.ends_with("/config.json")) name.resize(name.size() - 12);
  return name.substr(name.rfind('/') + 1);
}

std::string layout_text(const CsvTable& table, const CsvRow& row) {
  std::string layout;
  for (const char* name : {"tp", "pp", "dp", "cp", "ep", "vpp", "zero", "micro_batch"}) {
    const std::string value = cell(table, row, name);
    if (value.empty() || value == "1") continue;
    layout += (layout.empty() ? "" : " ") + std::string(name) + value;
  }
  const std::string recompute = cell(table, row, "recompute");
  if (!recompute.empty()) layout += " " + recompute;
  const std::string lag = cell(table, row, "policy_lag");
  if (!lag.empty()) {
    layout += " train" + cell(table, row, "train_gpus") + " gen" + cell(table, row, "gen_gpus");
  }
  return layout.empty() ? "one GPU" : layout;
}

ScoredRow scored(const CsvTable& table, const CsvRow& row) {
  ScoredRow result;
  result.line = row.line;
  result.job = model_name(cell(table, row, "model"));
  for (const char* name :
       {"kind", "gpus", "global_batch", "prompt_tokens", "precision", "mini_batch"}) {
    const std::string value = cell(table, row, name);
    if (!value.empty()) result.job += " " + value.substr(0, value.find_first_of(" ("));
  }
  result.layout = layout_text(table, row);
  result.fair = cell(table, row, "fair_time");
  result.measured = number(cell(table, row, "measured_step_s"));
  result.predicted = number(cell(table, row, "step_s"));
  if (cell(table, row, "fair_memory") == "1") {
    result.measured_gib = number(cell(table, row, "measured_peak_gib"));
    result.predicted_gib = number(cell(table, row, "peak_gib"));
  }
  result.feasible = cell(table, row, "feasible") == "1";
  const std::string oom = cell(table, row, "measured_oom");
  if (!oom.empty()) result.ran_out_of_memory = oom == "1";
  result.why = cell(table, row, "why");
  return result;
}

std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<double> ranks;
  for (const double value : values) {
    double below = 0, equal = 0;
    for (const double other : values) {
      below += other < value ? 1 : 0;
      equal += other == value ? 1 : 0;
    }
    ranks.push_back(below + (equal + 1) / 2);
  }
  return ranks;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const double n = static_cast<double>(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / n;
  const double mean_b = std::accumulate(b.begin(), b.end(), 0.0) / n;
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 1;
}

void score_ranked(Score& score) {
  std::vector<double> predicted, measured;
  double log_sum = 0;
  for (const ScoredRow& row : score.rows) {
    if (row.fair != "rank" || !row.error()) continue;
    predicted.push_back(*row.predicted);
    measured.push_back(*row.measured);
    log_sum += std::log(*row.predicted / *row.measured);
  }
  score.ranked = static_cast<int>(predicted.size());
  if (score.ranked == 0) return;
  score.scale = std::exp(log_sum / score.ranked);
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    score.scaled_error += std::abs(predicted[i] / score.scale / measured[i] - 1) / score.ranked;
  }
  score.rank_correlation = correlation(ranks_of(predicted), ranks_of(measured));
}

void score_memory(Score& score) {
  for (const ScoredRow& row : score.rows) {
    if (!row.measured_gib || !row.predicted_gib) continue;
    const double error = *row.predicted_gib / *row.measured_gib - 1;
    ++score.weighed;
    score.memory_error += std::abs(error);
    score.memory_bias += error;
  }
  if (score.weighed == 0) return;
  score.memory_error /= score.weighed;
  score.memory_bias /= score.weighed;
}

void score_choices(Score& score) {
  std::map<std::string, std::vector<const ScoredRow*>> jobs;
  for (const ScoredRow& row : score.rows) {
    if (row.measured && row.predicted && row.fair != "0") jobs[row.job].push_back(&row);
  }
  for (const auto& [job, rows] : jobs) {
    const bool differ = std::any_of(rows.begin(), rows.end(), [&](const ScoredRow* row) {
      return row->layout != rows.front()->layout;
    });
    if (!differ) continue;
    const auto* chosen = *std::min_element(rows.begin(), rows.end(), [](auto* a, auto* b) {
      if (a->feasible != b->feasible) return a->feasible;
      return *a->predicted < *b->predicted;
    });
    // Repeated layouts (releases): the mean of their measurements.
    std::map<std::string, std::pair<double, int>> by_layout;
    for (const ScoredRow* row : rows) {
      by_layout[row->layout].first += *row->measured;
      ++by_layout[row->layout].second;
    }
    const auto mean = [&](const std::string& layout) {
      return by_layout[layout].first / by_layout[layout].second;
    };
    const auto* best = *std::min_element(rows.begin(), rows.end(), [&](auto* a, auto* b) {
      return mean(a->layout) < mean(b->layout);
    });
    score.choices.push_back(
        {job, chosen->layout, best->layout, mean(chosen->layout) / mean(best->layout) - 1});
    score.mean_regret += score.choices.back().regret;
  }
  if (!score.choices.empty()) score.mean_regret /= static_cast<double>(score.choices.size());
}

}  // namespace

Score score_of(const CsvTable& swept, const std::string& column, const std::string& match) {
  Score score;
  for (const CsvRow& row : swept.rows) {
    if (!column.empty() && cell(swept, row, column) != match) continue;
    score.rows.push_back(scored(swept, row));
    const ScoredRow& last = score.rows.back();
    if (last.ran_out_of_memory) {
      score.accepted_but_ran_out += *last.ran_out_of_memory && last.feasible ? 1 : 0;
      score.refused_but_ran += !*last.ran_out_of_memory && !last.feasible ? 1 : 0;
    }
    if (last.fair != "1" || !last.error()) continue;
    ++score.compared;
    score.mean_error += std::abs(*last.error());
    score.worst_error = std::max(score.worst_error, std::abs(*last.error()));
  }
  if (score.compared > 0) score.mean_error /= score.compared;
  score_ranked(score);
  score_memory(score);
  score_choices(score);
  return score;
}

std::string describe(const std::string& title, const Score& score) {
  std::string out = title + "\n";
  for (const ScoredRow& row : score.rows) {
    out += text("  %4zu  %-52.52s %-34.34s", row.line, row.job.c_str(), row.layout.c_str());
    out += row.measured ? text(" %10.3f s", *row.measured) : text(" %12s", "-");
    out += row.predicted ? text(" %10.3f s", *row.predicted) : text(" %12s", "-");
    out += row.error() ? text(" %+7.1f %%", 100 * *row.error()) : text(" %9s", "-");
    out += row.fair == "rank" ? " rank" : row.fair == "0" ? " sums" : "     ";
    out += row.feasible ? "\n" : "  infeasible: " + row.why.substr(0, 70) + "\n";
  }
  if (score.compared > 0) {
    out += text("  %d rows, mean error %.1f %%, worst %.1f %%\n", score.compared,
                100 * score.mean_error, 100 * score.worst_error);
  }
  if (score.ranked > 0) {
    out += text(
        "  %d rows by rank: scale %.2f, mean error without it %.1f %%, rank correlation %.3f\n",
        score.ranked, score.scale, 100 * score.scaled_error, score.rank_correlation);
  }
  if (score.weighed > 0) {
    out += text("  %d peaks, mean error %.1f %%, bias %+.1f %%\n", score.weighed,
                100 * score.memory_error, 100 * score.memory_bias);
  }
  for (const Choice& choice : score.choices) {
    out +=
        text("  choice %-44.44s takes %-30.30s best %-30.30s regret %.1f %%\n", choice.job.c_str(),
             choice.chosen.c_str(), choice.best.c_str(), 100 * choice.regret);
  }
  if (!score.choices.empty()) {
    out +=
        text("  %zu choices, mean regret %.1f %%\n", score.choices.size(), 100 * score.mean_regret);
  }
  return out + text("  memory: %d accepted that ran out, %d refused that ran\n",
                    score.accepted_but_ran_out, score.refused_but_ran);
}

}  // namespace tessera
