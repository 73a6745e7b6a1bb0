// SPDX-License-Identifier: GPL-3.0-or-later
// Two runs' phases beside each other.
#include "gui/watch/run_phases_model.h"

#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QTemporaryDir>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <span>

#include "cost_models/documents/csv.h"
#include "cost_models/documents/problem.h"
#include "gui/metrics/phase_seconds.h"
#include "gui/run_views/step_chart.h"
#include "gui/units/number_role.h"
#include "gui/views/table.h"
#include "gui/watch/run_settings.h"
#include "simulator/learn/measured_run.h"
#include "tests/gui/explore_flow.h"
#include "tests/gui/model_tester.h"

namespace tessera::gui {
namespace {

/// Steps whose first one is ten times as long; `gen` is half of each.
StepColumns run_of(double seconds, int steps) {
  std::vector<StepNumbers> lines;
  for (int step = 0; step <= steps; ++step) {
    const double taken = (step == 1 ? 10 : 1) * seconds * (1 + 0.01 * (step % 2));
    StepNumbers line{step, {{"timing_s/step", taken}, {"timing_s/gen", taken / 2}}};
    if (step == 0) line.data = {{"timing_s/testing", 5}, {"val/score", 1}};  // validated alone
    lines.push_back(line);
  }
  return columns_of(lines);
}

TEST(RunPhases, MeansAreWithoutTheWarmUpAndTheStepStandsLast) {
  const StepColumns run = run_of(2, 9);
  const auto means = phase_times(run);
  ASSERT_EQ(means.size(), 2u);
  EXPECT_EQ(means[0].first, "gen");
  EXPECT_EQ(means[1].first, "step");
  double sum = 0, squares = 0;
  std::vector<double> taken;
  for (int step = 2; step <= 9; ++step) taken.push_back(2 * (1 + 0.01 * (step % 2)));
  for (const double each : taken) sum += each;
  const double mean = sum / 8;
  for (const double each : taken) squares += (each - mean) * (each - mean);
  EXPECT_NEAR(means[1].second.seconds.mean, mean, 1e-12);
  EXPECT_NEAR(means[0].second.seconds.mean, mean / 2, 1e-12);
  EXPECT_NEAR(means[1].second.seconds.deviation, std::max(0.003 * mean, std::sqrt(squares / 7 / 8)),
              1e-12);
  EXPECT_TRUE(phase_times({}).empty());
}

// One checkpoint in 200 steps is no part of all of them.
TEST(RunPhases, WhatOnlySomeStepsHadIsSaidToBeOfThese) {
  std::vector<StepNumbers> lines;
  for (int step = 1; step <= 201; ++step) {
    lines.push_back({step, {{"timing_s/step", 1.0}, {"timing_s/gen", 0.5}}});
  }
  lines[99].data["timing_s/save_checkpoint"] = 0.019;
  const auto times = phase_times(columns_of(lines));
  ASSERT_EQ(times.size(), 3u);
  EXPECT_EQ(times[1].first, "save_checkpoint");
  EXPECT_EQ(times[1].second.timed, 1);
  EXPECT_EQ(times[1].second.steps, 200);
  EXPECT_NEAR(times[1].second.per_step(), 0.019 / 200, 1e-15);
  const StepColumns run = columns_of(lines);
  RunPhasesModel model;
  model.setRuns({{"run", &run}});
  EXPECT_EQ(model.index(1, 0).data().toString().section(", ", 0, 0), "save_checkpoint");
  EXPECT_TRUE(model.index(1, 0).data().toString().startsWith("save_checkpoint, in 1 of "))
      << model.index(1, 0).data().toString().toStdString();
  EXPECT_EQ(model.index(0, 0).data().toString(), "gen");
}

// Against the means of `tessera compare`, which reads the lines.
TEST(RunPhases, OfALongRunAllStepsButTheFirstCount) {
  std::vector<StepNumbers> lines;
  for (int step = 1; step <= 1000; ++step) {
    const double taken = step <= 800 ? 20 : 2;
    lines.push_back({step,
                     {{"timing_s/step", taken},
                      {"timing_s/update_weights", taken / 8},
                      {"timing_s/switch_to_rollout", taken / 8}}});
  }
  const auto counted = std::span(lines).subspan(1);
  const auto times = phase_times(columns_of(lines));
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].first, "reshard");
  const auto reshard = phase_time(counted, Phase::reshard);
  EXPECT_NEAR(times[0].second.seconds.mean, reshard->seconds.mean, 1e-12);
  EXPECT_NEAR(times[0].second.seconds.deviation, reshard->seconds.deviation, 1e-12);
  EXPECT_EQ(times[1].second.steps, 999);
  EXPECT_NEAR(times[1].second.seconds.mean, (799 * 20 + 200 * 2) / 999.0, 1e-9);
}

TEST(RunPhases, AnotherRunStandsBesideTheFirstWithItsDifference) {
  RunPhasesModel model;
  QAbstractItemModelTester tester(&model, kFatal);
  EXPECT_EQ(csvOf(model), "");
  const StepColumns first = run_of(2, 9), second = run_of(3, 9);
  model.setRuns({{"monday", &first}, {"tuesday", &second}});
  ASSERT_EQ(model.columnCount(), 6);
  const int last = model.rowCount() - 1;
  const auto text = [&](int column) { return model.index(last, column).data().toString(); };
  EXPECT_EQ(text(0), "step");
  EXPECT_EQ(text(1), "2.01 s");
  EXPECT_EQ(text(3), "3.02 s");
  EXPECT_EQ(text(5), "+50.0 %");
  Problems problems;
  const auto table = parse_csv(csvOf(model), "runs.csv", problems);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->header,
            (std::vector<std::string>{"Phase", "monday, s", "monday +-, s", "tuesday, s",
                                      "tuesday +-, s", "tuesday: Against monday, %"}));
  EXPECT_NEAR(std::stod(table->rows.back().cells[3]), 3.015, 1e-9);
  EXPECT_NEAR(std::stod(table->rows.back().cells[5]), 50, 1e-9);
}

// Keys of run.yaml and what plan.json is, as far as they are not the same.
TEST(RunSettings, ThatDifferAreNamed) {
  QTemporaryDir folder;
  const std::filesystem::path top = folder.path().toStdString();
  const std::string plan = std::string(TESSERA_SOURCE_DIR) + "/tests/gui/data/run/plan.json";
  for (const char* name : {"first", "second", "bare"}) {
    std::filesystem::create_directory(top / name);
  }
  std::filesystem::copy(plan, top / "first/plan.json");
  std::filesystem::copy(plan, top / "second/plan.json");
  std::ofstream(top / "first/run.yaml")
      << "actor: {optim: {lr: 1.0e-6}, seed: 1}\ndata: {train_files: [a.jsonl]}\n";
  std::ofstream(top / "second/run.yaml")
      << "actor: {optim: {lr: 5.0e-6}, seed: 1}\ndata: {train_files: [a.jsonl, b.jsonl]}\n"
         "algorithm: {gamma: 1}\n";
  const auto first = settings_of_run(top / "first"), second = settings_of_run(top / "second");
  const auto apart = settings_apart({first, second});
  ASSERT_EQ(apart.size(), 3u);
  EXPECT_EQ(apart[0].name, "actor.optim.lr");
  EXPECT_EQ(apart[0].values, QStringList({"1e-06", "5e-06"}));
  EXPECT_EQ(apart[1].name, "algorithm.gamma");
  EXPECT_EQ(apart[1].values, QStringList({"", "1"}));
  EXPECT_EQ(apart[2].values, QStringList({"[a.jsonl]", "[a.jsonl, b.jsonl]"}));
  EXPECT_TRUE(settings_of_run(top / "bare").empty());
  const auto with_plan = settings_apart({first, {}});
  EXPECT_TRUE(std::ranges::any_of(with_plan, [](const SettingApart& one) {
    return one.name == "plan: actor" && one.values[0].startsWith("tp");
  }));
}

// verl times the way of the weights under names of its own; a step is stacked whole.
TEST(RunPhases, TimeByPhaseHasWhatVerlCallsOtherwise) {
  const QString logs = QString(TESSERA_SOURCE_DIR) + "/tests/fixtures/verl_logs";
  MainWindow window;
  window.show();
  ASSERT_TRUE(window.openRun(logs, false));
  const std::vector<double> taken =
      phase_seconds(window.session().run()->steps()->columns(), Phase::reshard);
  ASSERT_FALSE(taken.empty());
  EXPECT_EQ(taken.back(), 1.15) << "update_weights of the last step";
  bool drawn = false;
  for (StepChart* chart : window.findChildren<StepChart*>()) {
    for (int i = 0; i < chart->plottableCount(); ++i) {
      drawn |= chart->plottable(i)->name() == "reshard";
    }
  }
  EXPECT_TRUE(drawn);
}

StepChart* chart_of(MainWindow& window, const QString& title) {
  for (StepChart* chart : window.findChildren<StepChart*>()) {
    if (chart->accessibleName() == title) return chart;
  }
  return nullptr;
}

// Axes of the run before would be taken for its own.
TEST(RunCharts, ARunWithoutAMetricHasNoAxesOfTheRunBefore) {
  MainWindow window;
  window.show();
  QTemporaryDir folder;
  std::ofstream lines(folder.filePath("metrics.jsonl").toStdString());
  for (int step = 500; step < 520; ++step) {
    lines << "{\"step\": " << step << ", \"data\": {\"reshard/gbps\": 300}}\n";
  }
  lines.close();
  ASSERT_TRUE(window.openRun(folder.path(), false));
  StepChart* rate = chart_of(window, "Reshard rate");
  ASSERT_NE(rate, nullptr);
  EXPECT_GT(rate->xAxis->range().upper, 500);
  ASSERT_TRUE(window.openRun(QString(TESSERA_SOURCE_DIR) + "/tests/fixtures/verl_logs", false));
  EXPECT_LE(rate->xAxis->range().upper, 1);
  EXPECT_LE(rate->yAxis->range().upper, 1);
}

TEST(RunCharts, OfARunAloneTheOnlyKlHasNoNameOfTheRun) {
  MainWindow window;
  window.show();
  QTemporaryDir first, second;
  for (const QTemporaryDir* folder : {&first, &second}) {
    std::ofstream(folder->filePath("metrics.jsonl").toStdString())
        << "{\"step\": 1, \"data\": {\"actor/ppo_kl\": 0.25}}\n";
  }
  ASSERT_TRUE(window.openRun(first.path(), false));
  StepChart* kl = chart_of(window, "KL divergence");
  ASSERT_NE(kl, nullptr);
  kl->resize(600, 400);
  EXPECT_EQ(kl->yAxis->label(), "ppo_kl, nats");
  std::ofstream(second.filePath("metrics.jsonl").toStdString())
      << "{\"step\": 1, \"data\": {\"timing_s/step\": 1}}\n";
  window.session().run()->addOther(second.path().toStdString(), false);
  EXPECT_EQ(kl->yAxis->label(), "ppo_kl, nats") << "the other one has none";
  window.session().keepOneRun();
  EXPECT_EQ(kl->yAxis->label(), "ppo_kl, nats");
}

TEST(RunPhases, AreATabOfTheRunsPage) {
  MainWindow window;
  window.resize(1280, 800);
  window.show();
  ASSERT_TRUE(window.openRun(QString(TESSERA_SOURCE_DIR) + "/tests/gui/data/run", false));
  QTemporaryDir folder;
  std::ofstream(folder.filePath("metrics.jsonl").toStdString())
      << "{\"step\": 1, \"data\": {\"timing_s/step\": 2, \"timing_s/gen\": 1}}\n";
  window.session().run()->addOther(folder.path().toStdString(), false);
  auto* tabs = window.findChild<QTabWidget*>("run_tabs");
  for (int tab = 0; tab < tabs->count(); ++tab) {
    if (tabs->tabText(tab) == "Runs side by side") tabs->setCurrentIndex(tab);
  }
  auto* table = named<QTableView>(window, "Phases of runs");
  ASSERT_NE(table, nullptr);
  EXPECT_TRUE(table->isVisible());
  EXPECT_EQ(table->model()->columnCount(), 6);
  EXPECT_GT(table->model()->rowCount(), 3);
  auto* settings = named<QTableView>(window, "Settings in which runs differ");
  ASSERT_TRUE(wait_for([&] { return settings->isVisible(); })) << "one has a plan.json";
  EXPECT_EQ(settings->model()->columnCount(), 3);
  window.session().run()->clearOthers();
  EXPECT_EQ(table->model()->columnCount(), 3);
  EXPECT_FALSE(settings->isVisible());
}

}  // namespace
}  // namespace tessera::gui
