// SPDX-License-Identifier: GPL-3.0-or-later
// The table of predicted beside measured.
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QFont>
#include <QStringList>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "gui/models/comparison_model.h"
#include "tests/gui/model_tester.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

TEST(ComparisonModel, SaysNothingOfWhatIsNotMeasured) {
  ComparisonModel model;
  QAbstractItemModelTester tester(&model, kFatal);
  model.setComparison({.times = compare(split_plan(), {})});
  ASSERT_FALSE(model.comparison().bytes.empty());
  const int last = model.rowCount() - 1;
  EXPECT_EQ(model.index(last, ComparisonModel::Measured).data().toString(), "-");
  EXPECT_EQ(model.index(last, ComparisonModel::RelativeError).data().toString(), "-");
  for (int row = 0; row < last; ++row) {
    EXPECT_EQ(model.index(row, ComparisonModel::Share).data().toString(), "-") << row;
  }
}

// A short table shows its first rows: the whole stands above what it is made of.
TEST(ComparisonModel, TheStepStandsFirst) {
  ComparisonModel model;
  model.setComparison({.times = compare(split_plan(), {})});
  const auto& phases = model.comparison().phases;
  ASSERT_EQ(phases.back().phase, "step");
  const auto name = [&](int row) { return model.index(row, 0).data().toString().toStdString(); };
  EXPECT_EQ(name(0), "step");
  for (int row = 1; row < std::ssize(phases); ++row) {
    EXPECT_EQ(name(row), phases[static_cast<std::size_t>(row) - 1].phase);
  }
  EXPECT_NE(name(static_cast<int>(phases.size())), "step");
  EXPECT_TRUE(model.index(0, 0).data(Qt::FontRole).value<QFont>().bold());
}

TEST(ComparisonModel, SaysWhatNothingIsPredictedFor) {
  ComparisonModel model;
  QAbstractItemModelTester tester(&model, kFatal);
  std::vector<StepNumbers> run(3);
  for (std::size_t i = 0; i < run.size(); ++i) {
    run[i].step = static_cast<std::int64_t>(i) + 1;
    run[i].data = {{"timing_s/step", 2}, {"timing_s/gen", 1}, {"timing_s/save_checkpoint", 0.5}};
  }
  model.setComparison(
      {.times = compare(split_plan(), run),
       .gaps = {{"save_checkpoint", 0.5, "the plan has no price for it"}, {"gen", 0.2, "slow"}}});
  EXPECT_EQ(model.gaps(),
            QStringList({"save_checkpoint took 500.0 ms: the plan has no price for it",
                         "gen took 200.0 ms longer than predicted: slow"}));
  int found = 0;
  for (int row = 0; row < model.rowCount(); ++row) {
    if (model.index(row, ComparisonModel::What).data().toString() != "save_checkpoint") continue;
    ++found;
    EXPECT_EQ(model.index(row, ComparisonModel::Predicted).data().toString(), "not predicted");
    EXPECT_EQ(model.index(row, ComparisonModel::Measured).data().toString(), "500.0 ms");
    EXPECT_EQ(model.index(row, ComparisonModel::RelativeError).data().toString(), "-");
  }
  EXPECT_EQ(found, 1);
}

}  // namespace
}  // namespace tessera::gui
