// SPDX-License-Identifier: GPL-3.0-or-later
// The plans as points: which no other beats, and that points and rows choose one another.
#include "gui/views/scatter_view.h"

#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QFile>
#include <QHelpEvent>
#include <QToolTip>
#include <algorithm>
#include <random>
#include <set>

#include "cost_models/documents/csv.h"
#include "cost_models/documents/strict_json.h"
#include "gui/pages/export_views.h"
#include "planner/request/describe.h"
#include "planner/request/plan_value.h"
#include "tests/gui/explore_flow.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

TEST(PlanPoints, UnbeatenAreThoseThatNoOtherBeats) {
  std::mt19937 random(7);
  const auto below = [&](unsigned n) { return static_cast<double>(random() % n); };
  for (int round = 0; round < 200; ++round) {
    std::vector<PlanPoint> points;
    for (int row = 0; row < 30; ++row) points.push_back({row, below(12), below(12)});
    std::set<int> expected, found;
    for (const PlanPoint& point : points) {
      const bool beaten = std::any_of(points.begin(), points.end(), [&](const PlanPoint& other) {
        return other.x <= point.x && other.y <= point.y && (other.x < point.x || other.y < point.y);
      });
      if (!beaten) expected.insert(point.row);
    }
    for (const PlanPoint& point : unbeaten(points)) found.insert(point.row);
    ASSERT_EQ(found, expected) << round;
  }
  EXPECT_TRUE(unbeaten({}).empty());
}

TEST(PlanTableModel, TheFrontIsMarkedAndWhatItHasBesideTheRowsIsAppended) {
  PlanTableModel plans;
  QAbstractItemModelTester tester(&plans, QAbstractItemModelTester::FailureReportingMode::Fatal);
  plans.setWinner(shared(free_plan()));
  const int before = plans.rowCount();
  const PlanFront front = front_of(free_plan(), {});
  ASSERT_TRUE(front.problem.isEmpty()) << front.problem.toStdString();
  ASSERT_GT(front.plans.size(), 1u);
  plans.addFront(front.plans);
  EXPECT_GT(plans.rowCount(), before);
  const auto on_front = std::count_if(plans.rows().begin(), plans.rows().end(),
                                      [](const auto& row) { return row.on_front; });
  EXPECT_EQ(on_front, static_cast<std::ptrdiff_t>(front.plans.size()));
  EXPECT_TRUE(plans.row(0).on_front);  // nothing is faster than the fastest
  // The line over GPUs and step is the planner's front, whatever rows there are beside it.
  std::set<int> planners, drawn;
  for (int row = 0; row < plans.rowCount(); ++row) {
    if (plans.row(row).on_front) planners.insert(row);
  }
  for (const PlanPoint& point : unbeaten(pointsOf(plans, Measure::gpus, Measure::step))) {
    drawn.insert(point.row);
  }
  EXPECT_EQ(drawn, planners);
  EXPECT_EQ(plans.index(0, PlanTableModel::Worse).data().toString(), "best");
  // Again it changes nothing.
  const int after = plans.rowCount();
  plans.addFront(front.plans);
  EXPECT_EQ(plans.rowCount(), after);
}

// In whichever order its pools are named, and however often the front has it.
TEST(PlanTableModel, APlacementOfTwoNamesIsOneRow) {
  const Plan& plan = split_plan();
  PlanTableModel plans;
  plans.setWinner(shared(plan));
  const int before = plans.rowCount();
  RunnerUp same = plans.row(0).summary;
  ASSERT_EQ(same.placement, "actor+reference | critic");
  same.placement = "critic | actor+reference";
  RunnerUp another = same;
  another.placement = "critic+reference | actor";
  plans.addFront({same, another, another});
  EXPECT_EQ(plans.rowCount(), before + 1);
  EXPECT_TRUE(plans.row(0).on_front);
}

// The plan of a file was searched for among those that were wanted: better ones are no worse than
// it.
TEST(PlanTableModel, APlanThatTheFrontBeatsIsNotCalledTheBest) {
  const PlanFront front = front_of(free_plan(), {});
  ASSERT_TRUE(front.problem.isEmpty()) << front.problem.toStdString();
  Plan slower = free_plan();
  slower.prediction.step_s = 2 * slower.prediction.step_s;
  slower.certificate.runner_up.clear();
  PlanTableModel plans;
  plans.setWinner(shared(slower));
  const auto heading = [&] {
    return plans.headerData(PlanTableModel::Worse, Qt::Horizontal, Qt::DisplayRole).toString();
  };
  EXPECT_EQ(heading(), "Against best");
  plans.addFront(front.plans);
  EXPECT_EQ(heading(), "Against row 1");
  EXPECT_EQ(plans.index(0, PlanTableModel::Worse).data().toString(), "-");
}

TEST(PlanFront, EachOfItsPlansTakesTheTimeAndTheGpusThatItSays) {
  const PlanFront front = front_of(free_plan(), {"actor.tp=1"});
  ASSERT_GT(front.plans.size(), 1u);
  for (const RunnerUp& other : front.plans) {
    const PlanAnswer found = answer(free_plan(), other);
    const auto* shared = std::get_if<SharedPlan>(&found.result);
    ASSERT_NE(shared, nullptr) << other.description;
    const Plan* const full = shared->get();
    EXPECT_NEAR(full->prediction.step_s, other.step_s, 1e-9 * other.step_s);
    EXPECT_EQ(gpus_of(*full), other.gpus);
    EXPECT_EQ(full->find(Role::actor)->layout.tp, 1);
  }
  EXPECT_FALSE(front_of(free_plan(), {"actor.tp=none"}).problem.isEmpty());
}

TEST(PlanPoints, ARowHasThePointsOfWhatItStates) {
  PlanTableModel plans;
  plans.setWinner(shared(free_plan()));
  const Plan& winner = free_plan();
  EXPECT_DOUBLE_EQ(*valueOf(plans, 0, Measure::step), winner.prediction.step_s.value);
  EXPECT_DOUBLE_EQ(*valueOf(plans, 0, Measure::gpus), gpus_of(winner));
  EXPECT_DOUBLE_EQ(*valueOf(plans, 0, Measure::memory),
                   static_cast<double>(winner.prediction.peak_bytes.value) / (1LL << 30));
  const double gpu_seconds = winner.prediction.step_s.value * gpus_of(winner);
  const double price = winner.cluster.price_per_gpu_hour;
  EXPECT_NEAR(*valueOf(plans, 0, Measure::cost),
              price > 0 ? price * gpu_seconds / 3600 : gpu_seconds, 1e-9 * gpu_seconds);
  EXPECT_FALSE(valueOf(plans, 1, Measure::memory));  // not planned in full so far
  EXPECT_EQ(pointsOf(plans, Measure::memory, Measure::step).size(), 1u);
  EXPECT_TRUE(describeRow(plans, 1).contains(
      QString::fromStdString(winner.certificate.runner_up.front().description)));
}

class Scatter : public Explore {
 protected:
  void SetUp() override {
    Explore::SetUp();
    ask(small_query());
    const int ranked = plans().rowCount();
    showTab("Trade-offs");
    scatter = window.findChild<PlanScatter*>();
    ASSERT_NE(scatter, nullptr);
    ASSERT_TRUE(scatter->isVisible());
    ASSERT_TRUE(wait_for([&] { return !window.session().isWorking(); }));
    ASSERT_GT(plans().rowCount(), ranked);  // the front's
    QCoreApplication::processEvents();
  }
  PlanTableModel& plans() { return *window.session().plans(); }
  QTableView* table() { return named<QTableView>(window, "Ranked plans"); }
  /// A row whose point lies apart from all others, and is not this one.
  int lonely(int but) {
    for (int row = 0; row < plans().rowCount(); ++row) {
      if (row != but && scatter->rowsAt(scatter->placeOf(row)) == std::vector<int>{row}) return row;
    }
    return -1;
  }
  int rowInTable() {
    const auto rows = table()->selectionModel()->selectedRows();
    return rows.size() == 1 ? rows.front().row() : -1;
  }

  PlanScatter* scatter = nullptr;
};

TEST_F(Scatter, APointChoosesItsRowAndARowItsPoint) {
  const int row = lonely(0);
  ASSERT_GT(row, 0);
  QTest::mouseClick(scatter, Qt::LeftButton, {}, scatter->placeOf(row));
  EXPECT_EQ(window.session().selectedRow(), row);
  ASSERT_TRUE(wait_for([&] { return window.session().shownRow() == row; }));
  EXPECT_EQ(rowInTable(), row);
  EXPECT_EQ(scatter->cursor(), row);
  const QRect cell = table()->visualRect(table()->model()->index(row, 0));
  EXPECT_TRUE(table()->viewport()->rect().contains(cell)) << "the row is in sight";
  EXPECT_EQ(describe_layouts(*document().plan), plans().row(row).summary.description);
  QTest::mouseClick(table()->viewport(), Qt::LeftButton, {},
                    table()->visualRect(table()->model()->index(0, 0)).center());
  EXPECT_EQ(window.session().selectedRow(), 0);
  EXPECT_EQ(scatter->cursor(), 0);
}

TEST_F(Scatter, KeysReachEveryPointAndEnterChoosesIt) {
  scatter->setFocus();
  for (int i = 0; i < plans().rowCount(); ++i) QTest::keyClick(scatter, Qt::Key_Left);
  std::set<int> reached{scatter->cursor()};
  for (int i = 0; i < plans().rowCount(); ++i) {
    QTest::keyClick(scatter, Qt::Key_Right);
    reached.insert(scatter->cursor());
    EXPECT_TRUE(
        scatter->accessibleDescription().startsWith(QString("Row %1:").arg(scatter->cursor() + 1)));
  }
  EXPECT_EQ(static_cast<int>(reached.size()), plans().rowCount());
  EXPECT_EQ(window.session().selectedRow(), 0);  // passing by plans nothing
  const int last = scatter->cursor();
  QTest::keyClick(scatter, Qt::Key_Return);
  EXPECT_EQ(window.session().selectedRow(), last);
}

TEST_F(Scatter, HoveringTellsTheLayouts) {
  const int row = lonely(-1);
  ASSERT_GE(row, 0);
  const QPoint at = scatter->placeOf(row);
  QHelpEvent hover(QEvent::ToolTip, at, scatter->mapToGlobal(at));
  QCoreApplication::sendEvent(scatter, &hover);
  EXPECT_TRUE(
      QToolTip::text().contains(QString::fromStdString(plans().row(row).summary.description)))
      << QToolTip::text().toStdString();
}

TEST_F(Scatter, AxesAreChosenByKeysAndNeverAlike) {
  auto* across = named<QComboBox>(window, "Horizontal axis");
  auto* up = named<QComboBox>(window, "Vertical axis");
  ASSERT_EQ(across->currentText(), nameOf(Measure::gpus));
  ASSERT_EQ(up->currentText(), nameOf(Measure::step));
  across->setFocus();
  QTest::keyClick(across, Qt::Key_Up);  // step, which the other axis has
  EXPECT_EQ(across->currentText(), nameOf(Measure::step));
  EXPECT_EQ(up->currentText(), nameOf(Measure::gpus));
  QTest::keyClick(up, Qt::Key_Down);
  EXPECT_EQ(up->currentText(), nameOf(Measure::memory));
  EXPECT_EQ(scatter->yAxis->label(), unitOf(plans(), Measure::memory));
  // Each row was planned in full, so that each has its memory.
  for (int row = 0; row < plans().rowCount(); ++row) {
    EXPECT_TRUE(plans().row(row).plan != nullptr) << row;
    EXPECT_GE(scatter->placeOf(row).x(), 0) << row;
  }
}

TEST_F(Scatter, AnEditForgetsTheFrontAndAnotherIsFound) {
  PlanQuery other = small_query();
  other.fixed = {"actor.tp=2"};
  window.session().ask(other);
  ASSERT_TRUE(wait_for(
      [&] { return document().answered == document().question && !window.session().isWorking(); }));
  for (int row = 0; row < plans().rowCount(); ++row) {
    EXPECT_NE(plans().row(row).summary.description.find("actor tp2"), std::string::npos) << row;
  }
  EXPECT_TRUE(std::any_of(plans().rows().begin(), plans().rows().end(),
                          [](const auto& row) { return row.on_front; }));
}

TEST_F(Scatter, IsExportedInEveryFormat) {
  const QStringList files = exportViews(window, folder.path(), kAllFormats);
  for (const char* kind : {"png", "svg", "csv", "json"}) {
    EXPECT_TRUE(files.contains(folder.filePath(QString("scatter.") + kind))) << kind;
  }
  QFile csv(folder.filePath("scatter.csv"));
  ASSERT_TRUE(csv.open(QIODevice::ReadOnly));
  Problems problems;
  const auto table = parse_csv(csv.readAll().toStdString(), "scatter.csv", problems);
  ASSERT_TRUE(table);
  ASSERT_EQ(static_cast<int>(table->rows.size()), plans().rowCount());
  QFile json(folder.filePath("scatter.json"));
  ASSERT_TRUE(json.open(QIODevice::ReadOnly));
  const auto tree = parse_json(json.readAll().toStdString(), "scatter.json", problems);
  ASSERT_TRUE(tree);
  const Node* list = tree->root.find("plans");
  ASSERT_NE(list, nullptr);
  for (std::size_t row = 0; row < list->items.size(); ++row) {
    const auto& of = plans().row(static_cast<int>(row));
    EXPECT_NEAR(list->items[row].find("step_s")->number, of.summary.step_s, 1e-12);
    EXPECT_EQ(list->items[row].find("gpus")->integer, of.summary.gpus);
    EXPECT_EQ(list->items[row].find("on_front")->boolean, of.on_front);
  }
}

}  // namespace
}  // namespace tessera::gui

int main(int argc, char** argv) {
  QApplication::setAttribute(Qt::AA_DontUseNativeDialogs);
  QApplication application(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
