// SPDX-License-Identifier: GPL-3.0-or-later
// A trace in the window, by keys and mouse.
#include <gtest/gtest.h>

#include <QLineEdit>
#include <QPushButton>
#include <QTableView>
#include <QTemporaryDir>
#include <algorithm>
#include <fstream>

#include "gui/pages/main_window.h"
#include "gui/step_views/timeline_canvas.h"
#include "gui/timeline/span_totals_model.h"
#include "tests/gui/window_flow.h"

namespace tessera::gui {
namespace {

/// The window with a plan whose step has been simulated.
struct OpenTrace : testing::Test {
  MainWindow window;
  TimelineCanvas* canvas = nullptr;

  void SetUp() override {
    window.resize(1280, 800);
    window.show();
    ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
    ASSERT_TRUE(window.openPlan(QString(TESSERA_SOURCE_DIR) + "/tests/gui/data/run/plan.json"));
    QTest::keyClick(&window, Qt::Key_2, Qt::ControlModifier);
    ASSERT_TRUE(wait_for([&] { return window.session().timeline()->facts() != nullptr; }));
    canvas = window.findChild<TimelineCanvas*>();
    ASSERT_NE(canvas, nullptr);
  }
};

// What another program measured, in the place of the simulated step, and back.
TEST_F(OpenTrace, ATraceIsOpenedSearchedSummedAndClosed) {
  const QTemporaryDir folder;
  const QString file = folder.filePath("profile.json"), broken = folder.filePath("broken.json");
  std::ofstream(file.toStdString()) << R"({"schemaVersion": 1, "traceEvents": [
        {"ph": "M", "name": "process_name", "pid": 5, "args": {"name": "python"}},
        {"ph": "X", "name": "aten::mm", "cat": "cpu_op", "pid": 5, "tid": 7, "ts": 100, "dur": 60},
        {"ph": "X", "name": "launch", "cat": "cuda", "pid": 5, "tid": 7, "ts": 120, "dur": 20},
        {"ph": "B", "name": "aten::mm", "pid": 5, "tid": 8, "ts": 200},
        {"ph": "E", "pid": 5, "tid": 8, "ts": 220},
        {"ph": "i", "name": "mark", "pid": 5, "tid": 8, "ts": 210}]})";
  std::ofstream(broken.toStdString()) << R"({"traceEvents": [{"ph": "X"}]})";
  const ViewState before = window.session().view();
  window.showPage(&window.explore());
  answer_file_dialog(&window, file);
  QTest::keyClick(&window, Qt::Key_T, Qt::ControlModifier | Qt::AltModifier);
  ASSERT_TRUE(wait_for([&] { return window.session().trace()->facts() != nullptr; }));
  ASSERT_TRUE(canvas->isVisible());
  EXPECT_EQ(canvas->picture().rows.size(), 3u);
  EXPECT_EQ(canvas->picture().index->end_ns, 120'000);
  EXPECT_EQ(canvas->picture().ranksAt({5, TimelinePicture::kRuler + 3}), "python");

  auto* search = window.findChild<QWidget*>("timeline")->findChild<QLineEdit*>();
  search->setFocus();
  QTest::keyClicks(search, "mm");
  EXPECT_EQ(canvas->matches(), 2u);
  QTest::keyClick(search, Qt::Key_Return);
  ASSERT_TRUE(canvas->picture().span.has_value());
  EXPECT_TRUE(canvas->describe(*canvas->picture().span).contains("cpu_op"));
  EXPECT_EQ(window.session().view(), before) << "no rank and no phase of the plan is meant";
  const auto* totals = window.findChild<QWidget*>("timeline")->findChild<QTableView*>();
  ASSERT_TRUE(wait_for([&] { return totals->model()->rowCount() >= 3; }));
  EXPECT_EQ(totals->model()->index(0, SpanTotalsModel::Name).data().toString(), "aten::mm");
  EXPECT_EQ(totals->model()->index(0, SpanTotalsModel::Count).data().toString(), "2");
  EXPECT_EQ(totals->model()->index(0, SpanTotalsModel::PhaseName).data().toString(), "");

  // A broken one, by the dialog for plans: it is told, and what is open stays.
  answer_file_dialog(&window, broken);
  window.activateWindow();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
  QTest::keyClick(&window, Qt::Key_O, Qt::ControlModifier);
  ASSERT_TRUE(wait_for([&] { return !window.session().document().file_problems.isEmpty(); }));
  EXPECT_TRUE(window.session().document().file_problems.contains("/traceEvents/0"))
      << window.session().document().file_problems.toStdString();
  EXPECT_NE(window.session().trace()->facts(), nullptr);

  window.showPage(&window.understand());
  search->clear();
  for (QPushButton* button : window.findChildren<QPushButton*>()) {
    if (button->text() == "Cl&ose the trace") QTest::mouseClick(button, Qt::LeftButton);
  }
  EXPECT_EQ(canvas->picture().index, window.session().timeline()->facts().get());
  EXPECT_EQ(canvas->picture().ranksAt({5, TimelinePicture::kRuler + 3}).left(4), "rank");
}

// Of many spans the sums come later, and are those of the same area.
TEST_F(OpenTrace, ALargeOneIsSummedInTheBackground) {
  constexpr int kSpans = 250'000;
  const QTemporaryDir folder;
  const QString file = folder.filePath("large.json");
  {
    std::ofstream out(file.toStdString());
    for (int i = 0; i < kSpans; ++i) {
      out << (i == 0 ? "[" : ",") << R"({"ph":"X","name":"a","pid":1,"tid":1,"dur":1,"ts":)"
          << 2 * i << "}";
    }
    out << "]";
  }
  const auto* totals = window.findChild<QWidget*>("timeline")->findChild<QTableView*>();
  const int rows = totals->model()->rowCount();
  ASSERT_TRUE(window.openTrace(file));
  const auto buttons = window.findChildren<QPushButton*>();
  const auto cancel = std::ranges::find(buttons, "Cancel rea&ding", &QPushButton::text);
  ASSERT_NE(cancel, buttons.end());
  QTest::mouseClick(*cancel, Qt::LeftButton);
  EXPECT_FALSE(window.session().trace()->isBusy());
  EXPECT_FALSE((*cancel)->isVisible());
  EXPECT_EQ(canvas->picture().index, window.session().timeline()->facts().get());

  ASSERT_TRUE(window.openTrace(file, false));
  EXPECT_EQ(totals->model()->rowCount(), rows) << "the window waited for the sums";
  ASSERT_TRUE(wait_for([&] { return totals->model()->rowCount() == 2; }));
  EXPECT_EQ(totals->model()->index(0, SpanTotalsModel::Count).data(SpanTotalsModel::SortRole),
            kSpans);
  EXPECT_EQ(totals->model()->index(1, SpanTotalsModel::Count).data(SpanTotalsModel::SortRole),
            kSpans - 1)
      << "gaps";
}

}  // namespace
}  // namespace tessera::gui
