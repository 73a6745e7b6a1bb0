#include "tests/validation/tables.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/model_spec.h"
#include "planner/sweep/search/row_search.h"
#include "planner/sweep/sweep.h"

namespace tessera {
namespace {

const std::filesystem::path kData =
    std::filesystem::path(TESSERA_SOURCE_DIR) / "tests/validation/data";

// Rows of architectures that no reader knows are left out and counted.
CsvTable readable(CsvTable table) {
  std::vector<CsvRow> known;
  std::map<std::string, bool> reads;
  for (CsvRow& row : table.rows) {
    const std::string& model = row.cells[*table.column("model")];
    auto [entry, added] = reads.try_emplace(model, false);
    Problems problems;
    if (added) entry->second = read_model_spec(kData / model, problems).has_value();
    if (entry->second) known.push_back(std::move(row));
  }
  if (known.size() < table.rows.size()) {
    std::printf("%zu rows of unknown architectures left out\n", table.rows.size() - known.size());
  }
  table.rows = std::move(known);
  return table;
}

}  // namespace

CsvTable swept_table(const std::string& name) {
  Problems problems;
  auto table = read_csv(kData / (name + ".csv"), problems);
  if (table) table = readable(*std::move(table));
  // Of a run that is known the verdict is what is likelier, not what one would bet a cluster on.
  constexpr double kEvenOdds = 0.5;
  const bool read = table && sweep(*table, kData, "", search_row, problems, kEvenOdds);
  EXPECT_TRUE(read) << (problems.empty() ? "" : to_string(problems[0]));
  return read ? *std::move(table) : CsvTable{};
}

Score printed(const std::string& title, const Score& score) {
  std::printf("%s\n", describe(title, score).c_str());
  return score;
}

}  // namespace tessera
