// SPDX-License-Identifier: GPL-3.0-or-later
// The window never says what is not so: flows by keys and mouse, as a person has them.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QAbstractItemModelTester>
#include <QHeaderView>
#include <QMessageBox>
#include <QPushButton>
#include <QTableView>
#include <QTemporaryDir>
#include <fstream>

#include "gui/pages/main_window.h"
#include "gui/views/chart.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_json.h"
#include "tests/gui/sample_plans.h"
#include "tests/gui/window_flow.h"

namespace tessera::gui {
namespace {

const QString kData = QString(TESSERA_SOURCE_DIR) + "/tests/gui/data";

PlanQuery small_query() {
  return {.model = "qwen2.5-0.5b", .cluster = "h100-8", .workload = "ppo-7b-1k"};
}

template <class Widget>
Widget* named(QWidget& window, const QString& name) {
  for (Widget* widget : window.findChildren<Widget*>()) {
    if (widget->accessibleName() == name) return widget;
  }
  return nullptr;
}

class Trust : public ::testing::Test {
 protected:
  void SetUp() override {
    window.show();
    ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
  }
  void ask(const PlanQuery& query) {
    window.session().ask(query);
    ASSERT_TRUE(wait_for([&] { return !window.session().isBusy(); }));
  }
  const Document& document() { return window.session().document(); }
  QString answer() { return named<MessageBar>(window, "Answer")->text(); }
  QTableView* plans() { return named<QTableView>(window, "Ranked plans"); }
  QAction* action(const QString& text) {
    for (QAction* action : window.findChildren<QAction*>()) {
      if (QString(action->text()).remove('&').remove("...") == text) return action;
    }
    return nullptr;
  }

  QTemporaryDir folder;
  MainWindow window;
};

TEST_F(Trust, AnExportThatCannotBeWrittenIsToldAndNothingElseHappens) {
  ASSERT_TRUE(window.openPlan(kData + "/run/plan.json"));
  with_dialog(&window, [&](QDialog& dialog) {
    named<QLineEdit>(dialog, "Folder")->setText("/proc");
    dialog.accept();
  });
  QTest::keyClick(&window, Qt::Key_E, Qt::ControlModifier);
  EXPECT_TRUE(document().file_problems.contains("/proc")) << document().file_problems.toStdString();
  EXPECT_TRUE(document().valid());
}

TEST_F(Trust, OpeningAPlanFillsTheFormAndAnEditIsOfItsQuestion) {
  PlanQuery other = small_query();
  other.workload = "grpo-7b-1k";
  other.fixed = {"actor.tp=2"};
  ask(other);
  const QString file = folder.filePath("opened.json");
  write_plan(free_plan(), file.toStdString());
  answer_file_dialog(&window, file);
  QTest::keyClick(&window, Qt::Key_O, Qt::ControlModifier);
  ASSERT_TRUE(document().valid());
  EXPECT_EQ(*document().plan, free_plan());
  EXPECT_EQ(window.explore().form()->query(), document().question);
  EXPECT_EQ(named<QComboBox>(window, "Workload")->currentText(), "ppo-7b-1k");
  EXPECT_EQ(named<QComboBox>(window, "actor.tp")->currentText(), "");
  EXPECT_TRUE(window.windowTitle().startsWith("opened.json - "))
      << window.windowTitle().toStdString();
  // An edit is of this plan's question, and can be undone.
  window.activateWindow();  // as a desktop does when a dialog closes
  ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
  QTest::keyClicks(named<QComboBox>(window, "actor.tp"), "4");
  ASSERT_TRUE(wait_for([&] { return document().plan->find(Role::actor)->layout.tp == 4; }));
  EXPECT_EQ(document().plan->workload, free_plan().workload);
  EXPECT_TRUE(window.windowTitle().contains('*'));
  QTest::keyClick(named<QComboBox>(window, "actor.tp"), Qt::Key_Z, Qt::ControlModifier);
  EXPECT_EQ(*document().plan, free_plan());
  EXPECT_EQ(named<QComboBox>(window, "actor.tp")->currentText(), "");
  QTest::keyClick(&window, Qt::Key_Z, Qt::ControlModifier);
  EXPECT_EQ(named<QComboBox>(window, "Workload")->currentText(), "grpo-7b-1k");
  EXPECT_EQ(named<QComboBox>(window, "actor.tp")->currentText(), "2");
  ASSERT_TRUE(wait_for([&] { return document().valid(); }));
}

TEST_F(Trust, NothingIsSavedWhileNothingAnswersTheQuestion) {
  ask(small_query());
  EXPECT_TRUE(action("Save plan")->isEnabled());
  auto* cover = window.explore().findChild<QWidget*>("stale");
  EXPECT_FALSE(cover->isVisible());
  ask(infeasible_query(folder.path().toStdString()));
  EXPECT_TRUE(answer().startsWith("Nothing fits: rank")) << answer().toStdString();
  EXPECT_TRUE(document().plan != nullptr);  // the earlier one stays in sight, hatched
  EXPECT_TRUE(cover->isVisible());
  EXPECT_FALSE(window.understand().findChild<QWidget*>("stale")->isHidden());
  EXPECT_FALSE(action("Save plan")->isEnabled());
  const QString file = folder.filePath("saved.json");
  EXPECT_FALSE(window.session().savePlan(file));
  EXPECT_FALSE(QFileInfo::exists(file));
  PlanQuery wrong = small_query();
  wrong.fixed = {"actor.tp=none"};
  ask(wrong);
  EXPECT_FALSE(action("Save plan")->isEnabled());
  ask(small_query());
  EXPECT_TRUE(action("Save plan")->isEnabled());
  EXPECT_FALSE(cover->isVisible());
}

TEST_F(Trust, AFixIsAButton) {
  ask({.model = "qwen2.5-14b",  // a 7B's live sequences fit
       .cluster = "h100-8",
       .workload = "grpo-7b-1k",
       .fixed = {"rollout.tp=1", "rollout.max_sequences=1024"}});
  ASSERT_TRUE(document().none_fits.has_value());
  QPushButton* fix = nullptr;
  for (auto* button : window.findChildren<QPushButton*>()) {
    if (button->text() == "Try: " + QString::fromStdString(document().none_fits->nearest_fix))
      fix = button;
  }
  ASSERT_NE(fix, nullptr);
  QTest::mouseClick(fix, Qt::LeftButton);
  ASSERT_TRUE(wait_for([&] { return document().valid(); }));
  EXPECT_EQ(window.explore().form()->query().fixed, document().question.fixed);
  EXPECT_FALSE(fix->isVisible());
}

TEST_F(Trust, TheFirstLineAnswersAndPraisesNobody) {
  ask(small_query());
  for (const char* part : {"+-", "tok/s/GPU", "fits with", " % in ", "row 2"}) {
    EXPECT_TRUE(answer().contains(part)) << part << ": " << answer().toStdString();
  }
  EXPECT_FALSE(answer().contains("optimum"));
  EXPECT_FALSE(answer().contains("branches"));
}

TEST_F(Trust, ARowThatIsPlannedEndsThePlanning) {
  ask(small_query());
  ASSERT_GT(plans()->model()->rowCount(), 1);
  const QPoint second = plans()->visualRect(plans()->model()->index(1, 0)).center();
  QTest::mouseClick(plans()->viewport(), Qt::LeftButton, {}, second);
  ASSERT_TRUE(wait_for([&] { return window.session().plans()->row(1).plan != nullptr; }));
  rest(600);
  EXPECT_FALSE(document().planning);
  EXPECT_FALSE(window.findChild<QWidget*>("waiting")->isVisible());
  const QString step = window.session().plans()->index(1, PlanTableModel::Step).data().toString();
  EXPECT_TRUE(answer().startsWith(step.section(' ', 0, 0))) << answer().toStdString();
  EXPECT_TRUE(answer().contains("behind row 1")) << answer().toStdString();
}

TEST_F(Trust, OneRowIsChosenAndItIsTheOneThatIsShown) {
  ask(small_query());
  ASSERT_GT(plans()->model()->rowCount(), 1);
  for (const int row : {1, 0}) {
    const QPoint at = plans()->visualRect(plans()->model()->index(row, 0)).center();
    QTest::mouseClick(plans()->viewport(), Qt::LeftButton, {}, at);
  }
  rest(800);
  EXPECT_EQ(plans()->selectionModel()->selectedRows().size(), 1);
  EXPECT_EQ(plans()->selectionModel()->selectedRows().value(0).row(), 0);
  EXPECT_EQ(*document().plan, *window.session().plans()->row(0).plan);
}

TEST_F(Trust, AFileOfManyErrorsLeavesTheWindowItsSize) {
  const QSize before = window.size();
  const QString file = folder.filePath("bad.json");
  std::ofstream out(file.toStdString());
  out << "{";
  for (int i = 0; i < 3000; ++i) out << "\"key" << i << "\": " << i << ",\n";
  out << "\"" << std::string(100000, 'x') << "\": 1}\n";
  out.close();
  EXPECT_FALSE(window.openPlan(file));
  rest(100);
  auto* said = named<MessageBar>(window, "What is wrong with a file");
  EXPECT_TRUE(said->isVisible()) << document().file_problems.left(300).toStdString();
  EXPECT_EQ(window.size(), before);
  EXPECT_LE(window.minimumSizeHint().width(), 1280);
  EXPECT_LE(window.minimumSizeHint().height(), 720);
  ASSERT_TRUE(window.openPlan(kData + "/run/plan.json"));
  EXPECT_FALSE(said->isVisible());
  // The same of a run's metrics.
  for (int i = 0; i < 2000; ++i) {
    std::ofstream(folder.filePath("metrics.jsonl").toStdString(), std::ios::app)
        << std::string(200, 'x') << "\n";
  }
  ASSERT_TRUE(window.openRun(folder.path(), false));
  rest(100);
  EXPECT_EQ(window.size(), before);
  EXPECT_LE(window.minimumSizeHint().height(), 720);
}

/// A rank that ended without a word, of a process that is gone for certain.
void leave_a_lost_rank(const QString& run) {
  const pid_t child = ::fork();
  if (child == 0) {
    RankStatusFile file(run.toStdString(), 0);
    file.enter("old_log_prob", 67);
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
}

TEST_F(Trust, ADeadRunDoesNotLookLikeAFinishedOne) {
  leave_a_lost_rank(folder.path());
  ASSERT_TRUE(window.openRun(folder.path(), false));
  auto* state = named<MessageBar>(window, "State of the run");
  EXPECT_EQ(state->text(), "rank 0 was lost in old_log_prob of step 67");
  const QColor lost = state->palette().color(QPalette::Window);
  RankStatusFile(folder.path().toStdString(), 0).finish(0);
  window.session().run()->poll();
  EXPECT_TRUE(state->text().startsWith("finished")) << state->text().toStdString();
  EXPECT_NE(state->palette().color(QPalette::Window), lost);
}

TEST_F(Trust, AStepLeavesTheZoomAndADoubleClickFits) {
  const auto write = [&](int step) {
    std::ofstream(folder.filePath("metrics.jsonl").toStdString(), std::ios::app)
        << "{\"step\": " << step << ", \"data\": {\"critic/score/mean\": " << step << "}}\n";
  };
  for (int step = 1; step <= 10; ++step) write(step);
  ASSERT_TRUE(window.openRun(folder.path(), false));
  auto* chart = window.findChild<Chart*>("reward");
  rest(50);
  const double all = chart->xAxis->range().size();
  const QPoint centre = chart->axisRect()->center();
  QWheelEvent wheel(centre, chart->mapToGlobal(centre), {}, {0, 240}, Qt::NoButton, Qt::NoModifier,
                    Qt::NoScrollPhase, false);
  QCoreApplication::sendEvent(chart, &wheel);
  const QCPRange zoomed = chart->xAxis->range();
  EXPECT_LT(zoomed.size(), all);
  write(11);
  window.session().run()->poll();
  EXPECT_EQ(chart->xAxis->range(), zoomed);
  QTest::mouseDClick(chart, Qt::LeftButton, {}, centre);
  EXPECT_TRUE(chart->xAxis->range().contains(11));
  EXPECT_TRUE(chart->xAxis->range().contains(1));
  write(12);
  window.session().run()->poll();
  EXPECT_TRUE(chart->xAxis->range().contains(12));
}

TEST_F(Trust, WhatIsTypedStaysAndIsCheckedBeforeItIsPlanned) {
  ask(small_query());
  auto* degree = named<QComboBox>(window, "actor.tp");
  degree->setFocus();
  QTest::keyClicks(degree->lineEdit(), "3");
  QTest::keyClick(degree->lineEdit(), Qt::Key_Tab);
  EXPECT_EQ(degree->currentText(), "3");
  ASSERT_TRUE(wait_for([&] {
    return document().answered == document().question && !document().question.fixed.empty();
  }));
  EXPECT_EQ(document().question.fixed, std::vector<std::string>{"actor.tp=3"});
  EXPECT_FALSE(document().valid());
  auto* gpus = named<QSpinBox>(window, "GPUs per node");
  gpus->setValue(2000);
  ASSERT_TRUE(
      wait_for([&] { return document().question.gpus_per_node == 2000 && !document().planning; }));
  EXPECT_FALSE(document().problems.empty());
  EXPECT_TRUE(answer().contains("gpus_per_node")) << answer().toStdString();
  EXPECT_FALSE(action("Save plan")->isEnabled());
}

TEST_F(Trust, EscapeEndsTheWaiting) {
  window.session().ask({.model = "qwen2.5-72b", .cluster = "h100-64", .workload = "ppo-7b-1k"});
  EXPECT_TRUE(document().planning);
  QTest::keyClick(&window, Qt::Key_Escape);
  EXPECT_FALSE(document().planning);
  EXPECT_TRUE(answer().contains("F5")) << answer().toStdString();
}

TEST_F(Trust, TabLeavesTheTableAndPlansNothing) {
  ask(small_query());
  ASSERT_GT(plans()->model()->rowCount(), 1);
  window.activateWindow();
  plans()->setFocus();
  QTest::keyClick(plans(), Qt::Key_Tab);
  EXPECT_FALSE(plans()->hasFocus());
  rest(500);
  EXPECT_EQ(window.session().selectedRow(), 0);
  // The arrows move at once and plan when they rest, Enter at once.
  plans()->setFocus();
  QTest::keyClick(plans(), Qt::Key_Down);
  EXPECT_EQ(window.session().selectedRow(), 0);
  QTest::keyClick(plans(), Qt::Key_Return);
  EXPECT_EQ(window.session().selectedRow(), 1);
}

TEST_F(Trust, EnterDoesNotStopARun) {
  RankStatusFile rank(folder.path().toStdString(), 0);
  ASSERT_TRUE(window.openRun(folder.path(), false));
  const QString run = folder.path();
  QPushButton* stop = nullptr;
  for (auto* button : window.findChildren<QPushButton*>()) {
    if (button->text() == "&Stop the run") stop = button;
  }
  ASSERT_NE(stop, nullptr);
  ASSERT_TRUE(stop->isEnabled());
  with_dialog(&window, [](QDialog& dialog) { QTest::keyClick(&dialog, Qt::Key_Return); });
  QTest::mouseClick(stop, Qt::LeftButton);
  EXPECT_FALSE(stop_requested(run.toStdString()));
  with_dialog(&window, [](QDialog& dialog) {
    QTest::mouseClick(dynamic_cast<QMessageBox&>(dialog).button(QMessageBox::Yes), Qt::LeftButton);
  });
  QTest::mouseClick(stop, Qt::LeftButton);
  EXPECT_TRUE(wait_for([&] { return stop_requested(run.toStdString()); }));
  rank.finish(0);
}

TEST_F(Trust, TheTableSortsAndFiltersAndFitsTheScreen) {
  EXPECT_LE(window.width(), 1280);  // the screen of the tests is smaller
  EXPECT_LE(window.height(), 800);
  ask(small_query());
  ASSERT_GT(plans()->model()->rowCount(), 1);
  QAbstractItemModelTester tester(plans()->model(),
                                  QAbstractItemModelTester::FailureReportingMode::Fatal);
  QHeaderView* header = plans()->horizontalHeader();
  const auto step_at = [&](int row) {
    return plans()
        ->model()
        ->index(row, PlanTableModel::Step)
        .data(PlanTableModel::SortRole)
        .toDouble();
  };
  const auto click = [&] {
    const int x = header->sectionViewportPosition(PlanTableModel::Step) + 8;
    QTest::mouseClick(header->viewport(), Qt::LeftButton, {}, {x, header->height() / 2});
  };
  const int last = plans()->model()->rowCount() - 1;
  click();
  const bool ascending = step_at(0) < step_at(last);
  click();
  EXPECT_NE(step_at(0) < step_at(last), ascending);
  EXPECT_EQ(window.session().selectedRow(), 0);  // sorting chooses nothing
  auto* filter = named<QLineEdit>(window, "Filter of the ranked plans");
  QTest::keyClicks(filter, "no plan has this");
  EXPECT_EQ(plans()->model()->rowCount(), 0);
  EXPECT_TRUE(document().valid());
}

}  // namespace
}  // namespace tessera::gui

int main(int argc, char** argv) {
  QApplication::setAttribute(Qt::AA_DontUseNativeDialogs);
  QApplication application(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
