// SPDX-License-Identifier: GPL-3.0-or-later
// A run beside its prediction: gaps, rules, other runs, learning and advice.
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QApplication>
#include <QDialogButtonBox>
#include <QDir>
#include <QFile>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTemporaryDir>
#include <fstream>

#include "cost_models/documents/problem.h"
#include "cost_models/fit/derived_calibration.h"
#include "gui/pages/main_window.h"
#include "gui/run_views/step_chart.h"
#include "gui/views/chart.h"
#include "planner/engines/read_plan.h"
#include "simulator/learn/learned_report.h"
#include "simulator/learn/measured_run.h"
#include "simulator/learn/run_comparison.h"
#include "simulator/timeline/metrics.h"
#include "simulator/timeline/wire_options.h"
#include "tests/gui/model_tester.h"
#include "tests/gui/sample_plans.h"
#include "tests/gui/window_flow.h"

namespace tessera::gui {
namespace {

const QString kRun = QString(TESSERA_SOURCE_DIR) + "/tests/gui/data/run";

/// The sample run as the command line reads it.
struct Sample {
  MeasuredRun run;
  Calibration calibration;
};
Sample sample() {
  Problems problems;
  const std::filesystem::path folder = kRun.toStdString();
  auto plan = read_plan(folder / "plan.json", problems);
  auto steps = read_metrics(folder / "metrics.jsonl", problems);
  auto run = measured_run(folder.string(), *plan, *steps, std::nullopt, problems);
  auto calibration = calibration_named(plan->provenance.calibration, plan->cluster, problems);
  EXPECT_TRUE(problems.empty());
  return {*run, *calibration};
}

struct Watch : testing::Test {
  MainWindow window;

  void SetUp() override {
    window.resize(1280, 900);
    window.show();
    ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
    ASSERT_TRUE(window.openRun(kRun, false));
  }
  RunFollower& run() { return *window.session().run(); }
  QPushButton* button(const QString& text) {
    for (QPushButton* button : window.findChildren<QPushButton*>()) {
      if (button->text() == text) return button;
    }
    return nullptr;
  }
  QString details(const QString& name) {
    for (QPlainTextEdit* text : window.findChildren<QPlainTextEdit*>()) {
      if (text->accessibleName() == name + ", details") return text->toPlainText();
    }
    return {};
  }
  MessageBar* bar(const QString& name) {
    for (MessageBar* bar : window.findChildren<MessageBar*>()) {
      if (bar->accessibleName() == name) return bar;
    }
    return nullptr;
  }
};

TEST_F(Watch, TheComparisonIsThatOfTheCommandLine) {
  const auto [measured, calibration] = sample();
  Problems problems;
  const RunComparison wanted =
      compare_run(measured, calibration, read_wire_options(kRun.toStdString(), problems));
  EXPECT_EQ(to_json(run().comparison()->run()), to_json(wanted));
  ASSERT_FALSE(wanted.gaps.empty());
  const QString gaps = details("Largest difference from the prediction");
  EXPECT_TRUE(gaps.contains(QString::fromStdString(wanted.gaps.front().cause))) << qPrintable(gaps);
  // Its error bars are those of the chart.
  auto* chart = window.findChild<Chart*>("gaps");
  ASSERT_NE(chart, nullptr);
  int bars = 0, errors = 0;
  for (int i = 0; i < chart->plottableCount(); ++i) {
    bars += qobject_cast<QCPBars*>(chart->plottable(i)) != nullptr ? 1 : 0;
    const auto* drawn = qobject_cast<QCPErrorBars*>(chart->plottable(i));
    if (drawn == nullptr) continue;
    ++errors;
    EXPECT_GT(drawn->data()->size(), 3);
  }
  EXPECT_EQ(bars, 2);
  EXPECT_EQ(errors, 2);
  // Both are what the caption says: of a measurement the mean's, which is not that of its steps.
  const QRect plot = chart->axisRect()->rect();
  const QString whole = chart->hintAt({plot.center().x(), plot.bottom() + 2});
  const QString caption = whole.isEmpty() ? chart->xAxis->label() : whole;
  EXPECT_EQ(caption,
            "seconds; error bars: one standard deviation of the prediction, and of the mean over "
            "the measured steps");
  const auto says = [&](int column) {
    return run().comparison()->headerData(column, Qt::Horizontal, Qt::ToolTipRole).toString();
  };
  EXPECT_TRUE(says(ComparisonModel::Deviation).contains("of the mean"));
  EXPECT_TRUE(says(ComparisonModel::PredictedDeviation).contains("of the prediction"));
}

TEST_F(Watch, APhaseThatIsChosenIsChosenInTheTable) {
  QTableView* table = nullptr;
  for (QTableView* each : window.findChildren<QTableView*>()) {
    if (each->accessibleName() == "Prediction and measurement") table = each;
  }
  ASSERT_NE(table, nullptr);
  window.session().look({-1, Phase::update_actor});
  ASSERT_TRUE(table->selectionModel()->hasSelection());
  EXPECT_EQ(table->selectionModel()->selectedRows().front().data().toString(), "update_actor");
  const QModelIndex first = table->model()->index(1, 0);  // below the step
  QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, table->visualRect(first).center());
  EXPECT_EQ(QString::fromStdString(std::string(name_of(*window.session().view().phase))),
            first.data().toString());
}

TEST(RuleModel, HasTheVerdictsOfTheRules) {
  RuleModel model;
  QAbstractItemModelTester tester(&model, kFatal);
  Problems problems;
  const auto profile = read_rules("default", problems);
  ASSERT_EQ(model.rowCount(), static_cast<int>(profile->rules.size()));
  Expectation expectation;
  expectation.predicted = {
      {"timing_s/step", 2.0}, {"timing_s/gen", 1.0}, {"timing_s/update_actor", 1.0}};
  const std::map<std::string, double> values{
      {"timing_s/step", 2.6}, {"timing_s/gen", 1.4}, {"timing_s/update_actor", 1.1}};
  model.setExpectation(expectation);
  EXPECT_TRUE(model.banner().isEmpty());
  model.setValues(values);
  const MetricValues judged_values(values.begin(), values.end());
  int violated = 0;
  for (const JudgedRule& row : judge(*profile, judged_values, expectation)) {
    violated += row.verdict.outcome == RuleOutcome::violated ? 1 : 0;
  }
  ASSERT_GT(violated, 0);
  EXPECT_EQ(model.violated(), violated);
  EXPECT_TRUE(model.index(0, 0).data(RuleModel::BadRole).toBool());  // what is wrong comes first
  EXPECT_TRUE(model.banner().contains("timing_s/step is 2.60 s, where at most 2.50 s"));
  // Lines are at the limits in the metric's own unit.
  ASSERT_EQ(model.linesOf("timing_s/gen").size(), 1u);
  EXPECT_DOUBLE_EQ(model.linesOf("timing_s/gen")[0].limit, 1.5);
  EXPECT_FALSE(model.linesOf("timing_s/gen")[0].violated);
  EXPECT_TRUE(model.linesOf("timing_s/step")[0].violated);
  EXPECT_FALSE(model.setProfile("no such profile"));
  EXPECT_EQ(model.violated(), violated);
  EXPECT_TRUE(model.setProfile("published-practice"));
  EXPECT_EQ(model.profile().profile, read_rules("published-practice", problems)->profile);
}

TEST_F(Watch, AViolatedRuleIsABannerAndALine) {
  MessageBar* banner = bar("Rules that are violated");
  ASSERT_NE(banner, nullptr);
  Expectation expectation;
  expectation.predicted = {{"perf/throughput", 1.0}, {"timing_s/step", 1.0}};
  run().rules()->setExpectation(expectation);
  run().rules()->setValues({{"perf/throughput", 1e-6}, {"timing_s/step", 1e6}});
  EXPECT_EQ(banner->text(), run().rules()->banner());
  EXPECT_FALSE(banner->isHidden());
  run().rules()->setValues({});
  EXPECT_TRUE(banner->isHidden());
}

// The constants of processors are assumptions: times do not come true, bytes do.
TEST_F(Watch, APredictionWithoutCalibrationRaisesNoAlarms) {
  EXPECT_EQ(run().roughTimes(), RoughTimes::all);
  EXPECT_EQ(run().rules()->violated(), 0) << run().rules()->banner().toStdString();
  const QString said = bar("Largest difference from the prediction")->text();
  EXPECT_TRUE(said.startsWith("Not calibrated: predicted times are rough")) << said.toStdString();
  EXPECT_TRUE(said.contains("tessera calibrate"));
  run().rules()->setValues(
      {{"timing_s/step", 1e6}, {"perf/throughput", 1e-6}, {"reshard/seconds", 1e6}});
  EXPECT_EQ(run().rules()->violated(), 0);
  run().rules()->setValues({{"timing_s/step", 1e6}, {"reshard/bytes", 1e12}});
  EXPECT_EQ(run().rules()->violated(), 1);
}

// What a GPU's plan promises of times is nothing that ranks on processors could keep.
TEST(RunFollower, APlanForGpusPromisesNothingOfRanksOnProcessors) {
  QTemporaryDir folder;
  const Plan& plan = free_plan();
  QFile recorded(kRun + "/metrics.jsonl");
  ASSERT_TRUE(recorded.open(QIODevice::ReadOnly));
  QByteArray steps = recorded.readAll();
  ASSERT_TRUE(steps.contains("0.17752321599999998"));  // plan/predicted_step_s
  steps.replace("0.17752321599999998", QByteArray::number(plan.prediction.step_s.value, 'g', 17));
  std::ofstream(folder.filePath("metrics.jsonl").toStdString()) << steps.toStdString();
  RunFollower run;
  run.setPlan(std::make_shared<const Plan>(plan));
  run.follow(folder.path().toStdString(), false);
  EXPECT_EQ(run.roughTimes(), RoughTimes::other_device);
  EXPECT_EQ(run.whyTimesAreNotJudged(),
            "the plan is for H100-SXM-80GB, and its ranks run on processors");
  EXPECT_TRUE(run.rules()->linesOf("timing_s/step").empty());
  EXPECT_FALSE(run.rules()->linesOf("reshard/bytes").empty()) << "bytes are judged";
}

TEST_F(Watch, AnotherRunIsDrawnBesideThisOne) {
  QTemporaryDir folder;
  const QString other = folder.filePath("warmer");
  ASSERT_TRUE(QDir().mkpath(other));
  std::ofstream((other + "/metrics.jsonl").toStdString())
      << "{\"step\": 1, \"data\": {\"critic/score/mean\": 0.25}}\n"
      << "{\"step\": 2, \"data\": {\"critic/score/mean\": 0.5}}\n";
  auto* chart = window.findChild<Chart*>("reward");
  const int before = chart->graphCount();
  answer_file_dialog(&window, other);
  QTest::mouseClick(button("&Beside it..."), Qt::LeftButton);
  ASSERT_TRUE(wait_for([&] { return run().others().size() == 1; }));
  ASSERT_EQ(chart->graphCount(), before + 1);
  EXPECT_EQ(chart->graph(before)->name(), "warmer");
  EXPECT_EQ(chart->graph(0)->name(), "run") << "a run is told by its folder, too";
  EXPECT_EQ(chart->graph(before)->dataCount(), 2);
  EXPECT_LT(chart->graph(before)->layer()->index(), chart->graph(0)->layer()->index())
      << "the run that is followed is not hidden by one that it equals";
  auto* bytes = window.findChild<Chart*>("reshard_bytes");
  ASSERT_GT(bytes->graphCount(), 1);
  EXPECT_EQ(bytes->graph(1)->layer(), bytes->graph(0)->layer()) << "nor its bound by it";
  window.activateWindow();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
  QTest::keyClick(&window, Qt::Key_O, Qt::ControlModifier | Qt::ShiftModifier);
  EXPECT_EQ(chart->graphCount(), before);
  run().addOther(other.toStdString() + "/", false);
  EXPECT_EQ(run().others().front().name, "warmer");
  run().clearOthers();
  // Folders of one name are told apart by what is above them; one that is drawn is drawn once.
  const QString same = folder.filePath("later/run");
  ASSERT_TRUE(QDir().mkpath(same));
  ASSERT_TRUE(QFile::copy(other + "/metrics.jsonl", same + "/metrics.jsonl"));
  EXPECT_EQ(run().name(), "run");
  for (int time = 0; time < 2; ++time) run().addOther(same.toStdString(), false);
  ASSERT_EQ(run().others().size(), 1u);
  EXPECT_EQ(run().others().front().name, "later/run");
  EXPECT_EQ(run().name(), "data/run");
  // One that is then followed is drawn once, too.
  ASSERT_TRUE(window.openRun(same));
  EXPECT_TRUE(run().others().empty());
  run().addOther(same.toStdString() + "/", false);
  EXPECT_TRUE(run().others().empty());
  ASSERT_TRUE(window.openRun(kRun));
  EXPECT_EQ(run().name(), "run");
  // A folder without metrics is told and changes nothing.
  run().addOther(folder.path().toStdString(), false);
  EXPECT_TRUE(run().others().empty());
  EXPECT_FALSE(bar("What is wrong with the run's files")->text().isEmpty());
}

// The pointer on one of the figures asks all of them.
TEST_F(Watch, TheFiguresSayWhatTheyHaveAtTheStepThatIsPointedTo) {
  window.showPage(&window.run());
  auto* reward = window.findChild<StepChart*>("reward");
  ASSERT_NE(reward, nullptr);
  const std::vector<QPointF> points = run().steps()->series("critic/score/mean");
  const QPointF& point = points[7];
  const QPoint at(static_cast<int>(reward->xAxis->coordToPixel(point.x())),
                  reward->axisRect()->rect().center().y());
  QTest::mouseMove(reward, at);
  const QString step = QString("step %1").arg(point.x());
  ASSERT_TRUE(wait_for([&] { return !reward->said().isEmpty(); }));
  EXPECT_EQ(reward->said(), (QStringList{step, QString("score  %1").arg(point.y(), 0, 'g', 4)}));
  int charts = 0;
  for (const StepChart* chart : window.run().findChildren<StepChart*>()) {
    if (chart->said().isEmpty()) continue;
    EXPECT_EQ(chart->said().front(), step);
    ++charts;
  }
  EXPECT_EQ(charts, 6);
  // Of stacked columns each part is told.
  const QStringList phases = window.findChild<StepChart*>("step_phases")->said();
  const double seconds = run().steps()->value("timing_s/gen", 7);
  EXPECT_TRUE(phases.contains(QString("gen  %1").arg(seconds, 0, 'g', 4)))
      << phases.join("; ").toStdString();
  QTest::mouseMove(&window, {2, 2});
  EXPECT_TRUE(wait_for([&] { return reward->said().isEmpty(); }));
}

TEST_F(Watch, ARunBesideItIsFollowedToo) {
  QTemporaryDir folder;
  const auto write = [&](int step) {
    std::ofstream(folder.filePath("metrics.jsonl").toStdString(), std::ios::app)
        << "{\"step\": " << step << ", \"data\": {\"critic/score/mean\": 0.25}}\n";
  };
  write(1);
  ASSERT_TRUE(window.openRun(kRun));
  run().addOther(folder.path().toStdString());
  ASSERT_TRUE(wait_for([&] { return run().others().size() == 1; }));
  const RunModel& other = *run().others().front().steps;
  EXPECT_EQ(other.rowCount(), 1);
  write(2);
  ASSERT_TRUE(wait_for([&] { return other.rowCount() == 2; }));
  auto* chart = window.findChild<Chart*>("reward");
  EXPECT_EQ(chart->graph(1)->dataCount(), 2);
}

}  // namespace
}  // namespace tessera::gui

int main(int argc, char** argv) {
  QApplication application(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
