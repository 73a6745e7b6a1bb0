// SPDX-License-Identifier: GPL-3.0-or-later
// Prediction beside measurement, for those who calculate with it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cost_models/documents/csv.h"
#include "cost_models/documents/problem.h"
#include "gui/models/comparison_model.h"
#include "planner/plan/plan.h"
#include "simulator/timeline/metrics.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

// Whoever calculates with the file reads no "500.0 ms" and no "1.5 MiB".
TEST(ComparisonModel, ItsCsvHasNumbersBesideTheirUnits) {
  ComparisonModel model;
  EXPECT_EQ(csv_of(model), "");
  std::vector<StepNumbers> run(3);
  for (std::size_t i = 0; i < run.size(); ++i) {
    run[i].step = static_cast<std::int64_t>(i) + 1;
    run[i].data = {{"timing_s/step", 2}, {"timing_s/gen", 1}, {"timing_s/save_checkpoint", 0.5}};
  }
  Comparison times = compare(split_plan(), run);
  times.bytes = {{.what = "reshard actor -> rollout",
                  .predicted = 1'572'864,
                  .measured = 1'572'000,
                  .steps_apart = 3}};
  model.setComparison({.times = times});
  Problems problems;
  const auto table = parse_csv(csv_of(model), "comparison.csv", problems);
  ASSERT_TRUE(table && problems.empty());
  EXPECT_EQ(table->header,
            (std::vector<std::string>{"Phase", "Unit", "Predicted", "Predicted, +-", "Measured",
                                      "Measured, +-", "Share, %", "Error, %", "Verdict"}));
  ASSERT_EQ(table->rows.size(), static_cast<std::size_t>(model.rowCount()));
  const auto cells = [&](const std::string& phase) {
    const auto found = std::ranges::find_if(
        table->rows, [&](const CsvRow& row) { return row.cells.front() == phase; });
    return found == table->rows.end() ? std::vector<std::string>(9) : found->cells;
  };
  const std::vector<std::string> gen = cells("gen");
  EXPECT_EQ(gen[1], "s");
  EXPECT_NEAR(std::stod(gen[2]), split_plan().prediction.phases_s.at(Phase::gen).value, 1e-9);
  EXPECT_EQ(gen[4], "1");
  EXPECT_EQ(gen[6], "50");
  EXPECT_NEAR(std::stod(gen[7]), 100 * (std::stod(gen[2]) - 1), 1e-6);
  EXPECT_EQ(cells("save_checkpoint")[2], "") << "nothing is predicted for it";
  EXPECT_EQ(cells("save_checkpoint")[4], "0.5");
  EXPECT_EQ(table->rows.back().cells,
            (std::vector<std::string>{"reshard actor -> rollout", "B", "1572864", "", "1572000", "",
                                      "", "", "NOT EQUAL in 3 steps"}));
}

TEST(ComparisonModel, AShareOfLessThanATenthOfAPerCentHasItsDigits) {
  std::vector<StepNumbers> run(3);
  for (std::size_t i = 0; i < run.size(); ++i) {
    run[i].step = static_cast<std::int64_t>(i) + 1;
    run[i].data = {{"timing_s/step", 2}, {"timing_s/gen", 0.0008}, {"timing_s/ref", 1}};
  }
  ComparisonModel model;
  model.setComparison({.times = compare(split_plan(), run)});
  QStringList shares;
  for (int row = 0; row < model.rowCount(); ++row) {
    shares << model.index(row, ComparisonModel::Share).data().toString();
  }
  EXPECT_TRUE(shares.contains("0.04 %")) << shares.join(" ").toStdString();
  EXPECT_TRUE(shares.contains("50.0 %")) << shares.join(" ").toStdString();
}

}  // namespace
}  // namespace tessera::gui
