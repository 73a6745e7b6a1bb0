#include "cost_models/spec/length_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "cost_models/documents/csv.h"
#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

constexpr std::int64_t kLongest = std::int64_t{1} << 30;
constexpr std::string_view kColumn = "response_tokens";
constexpr std::size_t kMostProblems = 100;

std::optional<std::size_t> column_of(const CsvTable& table, Problems& problems) {
  if (const auto found = table.column(kColumn)) return found;
  if (table.header.size() == 1) return 0;
  problems.push_back({table.file, "1", "no column '" + std::string(kColumn) + "'",
                      "the column response_tokens, or one column alone",
                      did_you_mean(std::string(kColumn), table.header)});
  return std::nullopt;
}

std::optional<std::int64_t> tokens_in(const std::string& cell) {
  double value = 0;  // spreadsheets write 8.0
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  const bool whole = error == std::errc{} && end == cell.data() + cell.size() &&
                     value == std::floor(value) && value >= 1 &&
                     value <= static_cast<double>(kLongest);
  return whole ? std::optional(static_cast<std::int64_t>(value)) : std::nullopt;
}

// As many equally likely lengths: the middles of equal parts, and the longest of all.
std::vector<std::int64_t> quantiles_of(const std::vector<std::int64_t>& sorted) {
  if (sorted.size() <= kMostQuantiles) return sorted;
  std::vector<std::int64_t> quantiles;
  for (std::size_t i = 0; i < kMostQuantiles; ++i) {
    quantiles.push_back(sorted[(2 * i + 1) * sorted.size() / (2 * kMostQuantiles)]);
  }
  quantiles.back() = sorted.back();
  return quantiles;
}

std::optional<LengthSpec> lengths_in(const CsvTable& table, Problems& problems) {
  const std::size_t before = problems.size();
  const auto column = column_of(table, problems);
  if (!column) return std::nullopt;
  std::vector<std::int64_t> tokens;
  for (const CsvRow& row : table.rows) {
    if (problems.size() - before >= kMostProblems) break;
    const std::string& cell = row.cells[*column];
    if (const auto value = tokens_in(cell)) {
      tokens.push_back(*value);
    } else {
      problems.push_back({table.file, std::to_string(row.line) + " (" + table.header[*column] + ")",
                          cell.empty() ? "an empty cell" : "'" + cell + "'",
                          "a whole number of tokens from 1 to " + std::to_string(kLongest), ""});
    }
  }
  if (problems.size() == before && tokens.empty()) {
    problems.push_back({table.file, "1", "no row", "at least one length", ""});
  }
  if (problems.size() != before) return std::nullopt;
  return lengths_of(std::move(tokens));
}

}  // namespace

LengthSpec lengths_of(std::vector<std::int64_t> tokens) {
  std::sort(tokens.begin(), tokens.end());
  const auto count = static_cast<double>(tokens.size());
  double sum = 0, squares = 0;
  for (const std::int64_t each : tokens) sum += static_cast<double>(each);
  const double mean = sum / count;
  for (const std::int64_t each : tokens) {
    squares += (static_cast<double>(each) - mean) * (static_cast<double>(each) - mean);
  }
  return {.mean = mean,
          .cv = std::sqrt(squares / count) / mean,
          .max = tokens.back(),
          .quantiles = quantiles_of(tokens)};
}

std::optional<LengthSpec> read_length_table(const std::filesystem::path& file, Problems& problems) {
  const auto table = read_csv(file, problems);
  return table ? lengths_in(*table, problems) : std::nullopt;
}

}  // namespace tessera
