#include "planner/sweep/sweep.h"

#include <array>
#include <cstdio>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

std::string text(const std::optional<double>& value) {
  if (!value) return {};
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.7g", *value);
  return buffer.data();
}

}  // namespace

std::optional<SweepSummary> sweep(CsvTable& table, const std::filesystem::path& folder,
                                  const std::string& calibration, const RowSearch& search,
                                  Problems& problems, double risk) {
  const auto rows = read_sweep_rows_as_far(table, problems);
  if (!rows) return std::nullopt;
  auto inputs = read_sweep_inputs(*rows, folder, table.file, calibration, problems);
  check_risk(risk, problems);
  if (!inputs || !problems.empty()) return std::nullopt;
  inputs->risk = risk;
  std::array<std::size_t, kSweepOutputs.size()> columns{};
  for (std::size_t i = 0; i < kSweepOutputs.size(); ++i) {
    const auto found = table.column(kSweepOutputs[i]);
    columns[i] = found.value_or(table.header.size());
    if (!found) table.header.emplace_back(kSweepOutputs[i]);
  }
  SweepPricer pricer(*inputs, search);
  SweepSummary summary{.rows = rows->size(), .kept = kept_columns(table)};
  for (std::size_t r = 0; r < rows->size(); ++r) {
    const SweepResult result = pricer.price((*rows)[r]);
    summary.feasible += result.feasible ? 1 : 0;
    const std::array<std::string, kSweepOutputs.size()> cells = {text(result.step_s),
                                                                 text(result.gen_s),
                                                                 text(result.reshard_s),
                                                                 text(result.log_prob_s),
                                                                 text(result.update_s),
                                                                 text(result.tokens_per_s_per_gpu),
                                                                 text(result.mfu),
                                                                 text(result.peak_gib),
                                                                 text(result.fits),
                                                                 result.feasible ? "1" : "0",
                                                                 result.why};
    table.rows[r].cells.resize(table.header.size());
    for (std::size_t i = 0; i < kSweepOutputs.size(); ++i)
      table.rows[r].cells[columns[i]] = cells[i];
  }
  return summary;
}

}  // namespace tessera
