// SPDX-License-Identifier: GPL-3.0-or-later
// Every metric of a run: columns, smoothing, the list that is searched, charts that share a
// crosshair.
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QComboBox>
#include <QDir>
#include <QScrollBar>
#include <QSlider>
#include <cmath>
#include <fstream>
#include <random>

#include "cost_models/documents/csv.h"
#include "cost_models/documents/problem.h"
#include "gui/metrics/smoothing.h"
#include "gui/metrics/step_columns.h"
#include "gui/pages/export_views.h"
#include "gui/run_views/metric_chart.h"
#include "gui/watch/metric_list_model.h"
#include "simulator/timeline/metrics.h"
#include "tests/gui/explore_flow.h"
#include "tests/gui/model_tester.h"

namespace tessera::gui {
namespace {

const QString kRun = QString(TESSERA_SOURCE_DIR) + "/tests/gui/data/run";

std::vector<StepNumbers> sample_steps() {
  Problems problems;
  return *read_metrics((kRun + "/metrics.jsonl").toStdString(), problems);
}

/// What the columns hold, one step after the other.
std::map<std::int64_t, std::map<std::string, double>> rows_of(const StepColumns& columns) {
  std::map<std::int64_t, std::map<std::string, double>> rows;
  for (std::size_t row = 0; row < columns.steps.size(); ++row) {
    auto& of = rows[columns.steps[row]];
    for (const auto& [name, values] : columns.columns) {
      if (row < values.size() && !std::isnan(values[row])) of[name] = values[row];
    }
  }
  return rows;
}

TEST(StepColumns, HoldWhatTheLinesSayHoweverTheyCome) {
  std::mt19937 random(7);
  std::vector<StepNumbers> lines;
  for (std::int64_t step = 1, line = 0; line < 300; ++line) {
    if (random() % 20 == 0) step = std::max<std::int64_t>(1, step - random() % 12);  // resumed
    StepNumbers numbers{step, {}};
    for (const char* name : {"a", "b/c", "d"}) {
      if (random() % 3 > 0) numbers.data[name] = static_cast<double>(random());
    }
    lines.push_back(std::move(numbers));
    step += 1 + random() % 2;
  }
  // A step replaces those from it on.
  std::map<std::int64_t, std::map<std::string, double>> expected;
  for (const StepNumbers& line : lines) {
    expected.erase(expected.lower_bound(line.step), expected.end());
    expected[line.step] = line.data;
  }
  EXPECT_EQ(rows_of(columns_of(lines)), expected);
  StepColumns blocks;
  for (std::size_t first = 0; first < lines.size();) {
    const std::size_t last = std::min(lines.size(), first + 1 + random() % 40);
    blocks.append(columns_of({lines.begin() + static_cast<std::ptrdiff_t>(first),
                              lines.begin() + static_cast<std::ptrdiff_t>(last)}));
    first = last;
  }
  EXPECT_EQ(rows_of(blocks), expected);
}

TEST(Smoothing, IsTheMeanOfAllStepsSoFarByTheirWeights) {
  std::mt19937 random(3);
  std::vector<QPointF> points;
  for (int step = 0; step < 50; ++step) points.emplace_back(3 * step, random() % 1000);
  EXPECT_EQ(smoothed(points, 0), points);
  const double weight = 0.83;
  const std::vector<QPointF> smooth = smoothed(points, weight);
  ASSERT_EQ(smooth.size(), points.size());
  for (std::size_t at = 0; at < points.size(); ++at) {
    double sum = 0, weights = 0;
    for (std::size_t i = 0; i <= at; ++i) {
      const double of = std::pow(weight, static_cast<double>(at - i));
      sum += of * points[i].y();
      weights += of;
    }
    EXPECT_NEAR(smooth[at].y(), sum / weights, 1e-9);
    EXPECT_EQ(smooth[at].x(), points[at].x());
  }
  EXPECT_TRUE(smoothed({}, 0.5).empty());
}

TEST(Smoothing, TheNearestPointIsFound) {
  const std::vector<QPointF> points{{1, 0}, {2, 0}, {10, 0}, {11, 0}};
  for (double step = -2; step < 14; step += 0.3) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < points.size(); ++i) {
      if (std::abs(points[i].x() - step) < std::abs(points[best].x() - step)) best = i;
    }
    const double found = points[nearest(points, step).value()].x();
    EXPECT_DOUBLE_EQ(std::abs(found - step), std::abs(points[best].x() - step)) << step;
  }
  EXPECT_FALSE(nearest({}, 1).has_value());
}

TEST(MetricListModel, HasEveryNumberOfTheRunAndKeepsTheChoice) {
  RunFollower run;
  MetricListModel model(&run);
  QAbstractItemModelTester tester(&model, kFatal);
  EXPECT_EQ(model.rowCount(), 0);
  run.follow(kRun.toStdString(), false);
  const std::vector<StepNumbers> steps = sample_steps();
  std::map<std::string, double> last;
  for (const StepNumbers& step : steps) {
    for (const auto& [name, value] : step.data) last[name] = value;
  }
  ASSERT_EQ(model.rowCount(), static_cast<int>(last.size()));
  int row = 0;
  for (const auto& [name, value] : last) {
    EXPECT_EQ(model.name(row), name);
    const QString shown = model.index(row, MetricListModel::Last).data().toString();
    EXPECT_NEAR(shown.toDouble(), value, 1e-4 * std::abs(value)) << name;
    ++row;
  }
  // A few are drawn from the start; of more than may be the first leaves.
  ASSERT_FALSE(model.drawn().empty());
  EXPECT_EQ(model.drawn().front(), "critic/score/mean");
  for (int i = 0; i < 12; ++i) model.choose(model.name(i), true);
  EXPECT_EQ(model.drawn().size(), MetricListModel::kMostChosen);
  EXPECT_EQ(model.drawn().back(), model.name(11));
  const QModelIndex gone = model.index(11, MetricListModel::Name);
  EXPECT_EQ(gone.data(Qt::CheckStateRole).toInt(), Qt::Checked);
  ASSERT_TRUE(model.setData(gone, Qt::Unchecked, Qt::CheckStateRole));
  EXPECT_EQ(model.drawn().size(), MetricListModel::kMostChosen - 1);
  const auto kept = model.drawn();
  QTemporaryDir empty;
  run.follow(empty.path().toStdString(), false);
  EXPECT_TRUE(model.drawn().empty());
  run.follow(kRun.toStdString(), false);
  EXPECT_EQ(model.drawn(), kept);
}

class Metrics : public Explore {
 protected:
  void SetUp() override {
    Explore::SetUp();
    std::filesystem::copy_file((kRun + "/metrics.jsonl").toStdString(),
                               folder.filePath("metrics.jsonl").toStdString());
    ASSERT_TRUE(window.openRun(folder.path(), false));
    window.showPage(&window.run());
    showTab("Metrics");
  }
  MetricChart* chart(const QString& metric) { return named<MetricChart>(window, metric); }
  void search(const QString& part) {
    QTest::keyClick(&window, Qt::Key_F, Qt::ControlModifier);
    auto* line = named<QLineEdit>(window, "Search of the metrics");
    ASSERT_TRUE(line->hasFocus());
    line->clear();
    QTest::keyClicks(line, part);
    QTest::keyClick(line, Qt::Key_Return);
  }
};

TEST_F(Metrics, ASearchFindsOneAndEnterDrawsIt) {
  auto* table = named<QTableView>(window, "Metrics of the run");
  const int all = table->model()->rowCount();
  ASSERT_EQ(chart("perf/mfu/actor"), nullptr);
  ASSERT_EQ(chart("critic/returns/min"), nullptr);
  search("RETURNS/MIN");
  EXPECT_LT(table->model()->rowCount(), all);
  MetricChart* drawn = chart("critic/returns/min");
  ASSERT_NE(drawn, nullptr);
  const auto& steps = *window.session().run()->steps();
  ASSERT_GE(drawn->graphCount(), 1);
  EXPECT_EQ(drawn->graph(0)->dataCount(),
            static_cast<int>(steps.series("critic/returns/min").size()));
  search("returns/min");
  EXPECT_EQ(chart("critic/returns/min"), nullptr);
}

TEST_F(Metrics, SmoothingDrawsTheMeanOverWhatWasMeasured) {
  MetricChart* score = chart("critic/score/mean");
  ASSERT_NE(score, nullptr);
  const int before = score->graphCount();
  auto* slider = named<QSlider>(window, "Smoothing");
  slider->setFocus();
  QTest::keyClick(slider, Qt::Key_End);
  slider->setValue(60);
  ASSERT_EQ(score->graphCount(), before + 1);
  const auto points = window.session().run()->steps()->series("critic/score/mean");
  const auto smooth = smoothed(points, 0.6);
  ASSERT_EQ(score->graph(0)->dataCount(), static_cast<int>(points.size()));
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_DOUBLE_EQ(score->graph(0)->dataMainValue(static_cast<int>(i)), smooth[i].y());
    EXPECT_DOUBLE_EQ(score->graph(before)->dataMainValue(static_cast<int>(i)), points[i].y());
  }
  QTest::keyClick(slider, Qt::Key_Home);
  EXPECT_EQ(score->graphCount(), before);
}

TEST_F(Metrics, TheCrosshairSaysWhatEachHasAtTheStep) {
  MetricChart* score = chart("critic/score/mean");
  MetricChart* other = chart("actor/grad_norm");
  ASSERT_TRUE(score != nullptr && other != nullptr);
  rest(50);
  const auto at = [&](const std::string& metric, double step) {
    const auto points = window.session().run()->steps()->series(metric);
    return QString::number(points[nearest(points, step).value()].y(), 'g', 6);
  };
  const int x = static_cast<int>(score->xAxis->coordToPixel(7.2));
  QTest::mouseMove(score, {x, score->axisRect()->center().y()});
  ASSERT_EQ(score->said().size(), 2) << score->said().join('\n').toStdString();
  EXPECT_EQ(score->said()[0], "step 7");
  EXPECT_TRUE(score->said()[1].endsWith(at("critic/score/mean", 7)));
  ASSERT_EQ(other->said().size(), 2);
  EXPECT_TRUE(other->said()[1].endsWith(at("actor/grad_norm", 7)));
  other->setFocus();
  QTest::keyClick(other, Qt::Key_Period);
  EXPECT_EQ(score->pointed(), 8);
  QTest::keyClick(other, Qt::Key_Comma);
  QTest::keyClick(other, Qt::Key_Comma);
  EXPECT_EQ(other->pointed(), 6);
  QEvent leave(QEvent::Leave);
  QCoreApplication::sendEvent(score, &leave);
  EXPECT_TRUE(other->said().isEmpty());
}

TEST_F(Metrics, ChartsShowTheSameStepsAndKeepThemWhenAStepComes) {
  MetricChart* score = chart("critic/score/mean");
  MetricChart* other = chart("actor/grad_norm");
  rest(50);
  score->setFocus();
  QTest::keyClick(score, Qt::Key_Plus);
  const QCPRange zoomed = score->xAxis->range();
  EXPECT_EQ(other->xAxis->range(), zoomed);
  std::ofstream(folder.filePath("metrics.jsonl").toStdString(), std::ios::app)
      << "{\"step\": 21, \"data\": {\"critic/score/mean\": 0.5, \"actor/grad_norm\": 2}}\n";
  window.session().run()->poll();
  EXPECT_EQ(score->xAxis->range(), zoomed);
  EXPECT_EQ(other->xAxis->range(), zoomed);
  QTest::keyClick(other, Qt::Key_Home);
  EXPECT_TRUE(score->xAxis->range().contains(21));
  EXPECT_TRUE(other->xAxis->range().contains(21));
}

// A box that nobody ticked is seen on both grounds: of its pixels some are far from the cell's.
TEST_F(Metrics, EmptyBoxesAreSeenInBothThemes) {
  auto* list = named<QTableView>(window, "Metrics of the run");
  for (const Theme theme : {Theme::light, Theme::dark}) {
    window.setTheme(theme);
    QCoreApplication::processEvents();
    const QImage all = list->viewport()->grab().toImage();
    int looked = 0;
    for (int row = 0; row < 12; ++row) {
      const QModelIndex index = list->model()->index(row, 0);
      if (index.data(Qt::CheckStateRole).toInt() != Qt::Unchecked) continue;
      const QRect cell = list->visualRect(index);
      const int ground = all.pixelColor(cell.right() - 2, cell.top() + 2).lightness();
      int seen = 0;
      for (int x = cell.left(); x < cell.left() + 24; ++x) {
        for (int y = cell.top(); y < cell.bottom(); ++y) {
          seen += std::abs(all.pixelColor(x, y).lightness() - ground) > 50 ? 1 : 0;
        }
      }
      EXPECT_GT(seen, 30) << row;
      ++looked;
    }
    EXPECT_GT(looked, 4);
  }
}

TEST_F(Metrics, AreExportedWholeAsATable) {
  QTemporaryDir into;
  const QStringList files = exportViews(window, into.path(), *formats_of("png,csv,whole"));
  EXPECT_TRUE(files.contains(into.filePath("metrics.png")));
  EXPECT_EQ(QImage(into.filePath("window_metrics.png")).size(), window.size());
  Problems problems;
  const auto table = read_csv(into.filePath("metrics.csv").toStdString(), problems);
  ASSERT_TRUE(table && problems.empty());
  const std::vector<StepNumbers> steps = sample_steps();
  ASSERT_EQ(table->rows.size(), steps.size());
  for (std::size_t row = 0; row < steps.size(); ++row) {
    for (const auto& [name, value] : steps[row].data) {
      const auto column = table->column(name);
      ASSERT_TRUE(column.has_value()) << name;
      EXPECT_EQ(std::stod(table->rows[row].cells[*column]), value) << name;
    }
  }
}

TEST_F(Metrics, TheLogStandsBesideTheRunAndBehindItsState) {
  const auto* log = named<QPlainTextEdit>(window, "Log of the run");
  showTab("Log");
  EXPECT_TRUE(log->toPlainText().isEmpty());
  QTemporaryDir above;
  const QString run = above.filePath("run");
  ASSERT_TRUE(QDir().mkpath(run));
  {
    std::ofstream text((run + ".log").toStdString());
    text << std::string(100'000, 'x') << "\n";
    for (int line = 1; line <= 40; ++line) text << "\x1b[31mline " << line << "\x1b[0m\r\n";
  }
  ASSERT_TRUE(window.openRun(run, false));
  EXPECT_TRUE(log->toPlainText().startsWith("line 1\n")) << "whole lines of the end alone";
  EXPECT_TRUE(log->toPlainText().endsWith("line 40"));
  const auto* behind = named<QPlainTextEdit>(window, "State of the run, details");
  EXPECT_TRUE(behind->toPlainText().startsWith("line 33\n"));
  EXPECT_TRUE(behind->toPlainText().endsWith("line 40"));
  std::ofstream((run + ".log").toStdString(), std::ios::app) << "CUDA out of memory\n";
  window.session().run()->poll();
  EXPECT_TRUE(log->toPlainText().endsWith("CUDA out of memory"));
}

// What a run prints ends with its first steps; the other log goes on.
TEST_F(Metrics, TheLogOfEveryStepIsInFrontOfWhatWasPrinted) {
  const auto* log = named<QPlainTextEdit>(window, "Log of the run");
  auto* which = named<QComboBox>(window, "Which log");
  showTab("Log");
  QTemporaryDir above;
  const QString run = above.filePath("run");
  ASSERT_TRUE(QDir().mkpath(run));
  std::ofstream((run + ".log").toStdString()) << "step 1\n";
  std::ofstream((run + "/log.txt").toStdString()) << "step 1\nstep 2\n";
  ASSERT_TRUE(window.openRun(run, false));
  EXPECT_EQ(log->toPlainText(), "step 1\nstep 2");
  ASSERT_EQ(which->count(), 2);
  which->setCurrentIndex(1);
  EXPECT_EQ(log->toPlainText(), "step 1");
  EXPECT_EQ(which->currentText(), "run.log: what the run printed");
  std::ofstream((run + "/log.txt").toStdString(), std::ios::app) << "step 3\n";
  window.session().run()->poll();
  EXPECT_EQ(log->toPlainText(), "step 1");  // the choice stays
  which->setCurrentIndex(0);
  EXPECT_TRUE(log->toPlainText().endsWith("step 3"));
}

TEST_F(Metrics, TheLogIsFollowedWhileItsEndIsLookedAt) {
  QTemporaryDir above;
  const QString run = above.filePath("run");
  ASSERT_TRUE(QDir().mkpath(run));
  int steps = 0;
  const auto write_on = [&](int more) {
    std::ofstream log((run + "/log.txt").toStdString(), std::ios::app);
    for (int i = 0; i < more; ++i) log << "step " << ++steps << "\n";
  };
  write_on(200);
  ASSERT_TRUE(window.openRun(run, false));
  showTab("Log");  // which finds its room with its text in it
  rest(50);
  QScrollBar* bar = named<QPlainTextEdit>(window, "Log of the run")->verticalScrollBar();
  const auto read_on = [&] {
    write_on(20);
    window.session().run()->poll();
    rest(50);
  };
  EXPECT_GT(bar->maximum(), 100);
  EXPECT_EQ(bar->value(), bar->maximum());
  read_on();
  EXPECT_EQ(bar->value(), bar->maximum());
  bar->setValue(30);
  read_on();
  EXPECT_EQ(bar->value(), 30);
}

}  // namespace
}  // namespace tessera::gui
