// SPDX-License-Identifier: GPL-3.0-or-later
// What is offered where nothing fits.
#include <gtest/gtest.h>

#include <QPushButton>
#include <QTableView>

#include "gui/document/text.h"
#include "gui/models/plan_table_model.h"
#include "planner/plan/plan.h"
#include "planner/pricing/memory_limit.h"
#include "tests/gui/explore_flow.h"

namespace tessera::gui {
namespace {

// Each says what the plan then is: the one that is taken has that step and leaves that much.
TEST_F(Explore, SeveralFixesAreButtonsThatSayWhatTheyBring) {
  ask({.model = "qwen2.5-14b",
       .cluster = "h100-8",
       .workload = "grpo-7b-1k",
       .fixed = {"rollout.tp=1", "rollout.max_sequences=1024"}});
  ASSERT_TRUE(document().none_fits.has_value());
  const auto* plans = window.explore().findChild<QWidget*>("plans")->findChild<QTableView*>();
  EXPECT_TRUE(plans->isColumnHidden(PlanTableModel::Cost)) << "steps' times are asked for";
  ASSERT_TRUE(wait_for([&] { return !window.session().isWorking(); }));
  const std::vector<PlannedFix> fixes = window.session().fixes();
  ASSERT_GE(fixes.size(), 3u);
  EXPECT_EQ(fixes.front().words, document().none_fits->nearest_fix);
  const int width = window.width();
  for (const std::size_t i : {std::size_t{0}, fixes.size() - 1}) {
    QPushButton* taken = nullptr;
    for (auto* button : window.findChildren<QPushButton*>()) {
      const bool says = button->text().contains(secondsText(fixes[i].step_s)) &&
                        button->text().contains(bytesText(fixes[i].free.value));
      if (says && button->isVisible() &&
          button->toolTip().startsWith(QString::fromStdString(fixes[i].words) + ": ")) {
        taken = button;
      }
    }
    ASSERT_NE(taken, nullptr) << fixes[i].words;
    QTest::mouseClick(taken, Qt::LeftButton);
    ASSERT_TRUE(wait_for([&] { return document().valid() && !window.session().isBusy(); }));
    const Plan& plan = *document().plan;
    EXPECT_DOUBLE_EQ(plan.prediction.step_s.value, fixes[i].step_s.value) << fixes[i].words;
    EXPECT_EQ(usable_memory(plan, *window.session().calibration()) - plan.prediction.peak_bytes,
              fixes[i].free);
    EXPECT_GE(fixes[i].free, 0);
    EXPECT_EQ(window.width(), width);
    window.session().undo();
    ASSERT_TRUE(
        wait_for([&] { return !window.session().isBusy() && !window.session().isWorking(); }));
  }
}

// Nodes that were made smaller than the cluster has them: all of their GPUs are what is nearest.
TEST_F(Explore, WholeNodesAreOfferedWhereTheFormHasFewerGpus) {
  PlanQuery query{.model = "qwen2.5-72b", .cluster = "h200-8", .workload = "grpo-7b-1k"};
  query.gpus_per_node = 1;
  ask(query);
  ASSERT_TRUE(document().none_fits.has_value());
  ASSERT_TRUE(wait_for([&] { return !window.session().isWorking(); }));
  const std::vector<PlannedFix> fixes = window.session().fixes();
  ASSERT_FALSE(fixes.empty());
  EXPECT_EQ(fixes.front().words, "8 GPUs per node instead of 1");
  EXPECT_EQ(fixes.front().question.gpus_per_node, 8);
  EXPECT_FALSE(with_whole_nodes(fixes.front().question));
}

// Most families are planned for other engines than the one that the window begins with.
TEST_F(Explore, AModelThatAnEngineDoesNotRunIsOfferedToAnyThatDoes) {
  const auto offer = [&]() -> QPushButton* {
    for (auto* button : window.findChildren<QPushButton*>()) {
      if (button->text() == "Plan for any engine" && button->isVisible()) return button;
    }
    return nullptr;
  };
  PlanQuery query = small_query();
  query.fixed = {"actor.tp=none"};
  ask(query);
  ASSERT_FALSE(document().problems.empty());
  EXPECT_EQ(offer(), nullptr);  // no engine could be asked that
  query.fixed.clear();
  query.model = "gemma3-1b";
  ask(query);
  ASSERT_FALSE(document().problems.empty());
  ASSERT_NE(offer(), nullptr);
  QTest::mouseClick(offer(), Qt::LeftButton);
  ASSERT_TRUE(wait_for([&] { return document().valid() && !window.session().isBusy(); }));
  EXPECT_EQ(document().question.engine, "any");
  EXPECT_EQ(offer(), nullptr);
  window.session().undo();
  EXPECT_EQ(document().question, query);
}

}  // namespace
}  // namespace tessera::gui
