// SPDX-License-Identifier: GPL-3.0-or-later
// Sliders beside the numbers of the form: they plan while they move, and are one edit.
#include <gtest/gtest.h>

#include <QLabel>
#include <QSpinBox>
#include <QStyle>
#include <QStyleOptionSlider>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <set>

#include "gui/document/text.h"
#include "gui/form/step_slider.h"
#include "planner/plan/plan.h"
#include "tests/gui/event_loop.h"
#include "tests/gui/explore_flow.h"

namespace tessera::gui {
namespace {

struct Sliders : Explore {
  StepSlider* slider(const QString& name) { return named<StepSlider>(window, "Slider: " + name); }
  QSpinBox* number(const QString& name) { return named<QSpinBox>(window, name); }
  static QPoint handle(StepSlider* slider, int position) {
    QStyleOptionSlider option;
    option.initFrom(slider);
    option.minimum = slider->minimum();
    option.maximum = slider->maximum();
    option.sliderPosition = option.sliderValue = position;
    return slider->style()
        ->subControlRect(QStyle::CC_Slider, &option, QStyle::SC_SliderHandle, slider)
        .center();
  }
  /// Holds the handle, goes there position by position, and does this at each.
  template <class Does>
  void drag(StepSlider* slider, int to, const Does& does) {
    slider->window()->activateWindow();
    int at = slider->value();
    QTest::mousePress(slider, Qt::LeftButton, {}, handle(slider, at));
    while (at != to) {
      at += at < to ? 1 : -1;
      QTest::mouseMove(slider, handle(slider, at));
      does();
    }
  }
  void let_go(StepSlider* slider) {
    QTest::mouseRelease(slider, Qt::LeftButton, {}, handle(slider, slider->value()));
  }
  bool answered(const WorkloadChange& change) {
    return wait_for([&] { return document().valid() && document().question.batch == change; });
  }
};

// The limit that goes with the mean.
TEST_F(Sliders, TheLimitOfResponsesStandsBesideTheirMean) {
  ask(small_query());
  auto* limit = named<QSpinBox>(window, "Longest response");
  ASSERT_NE(limit, nullptr);
  const auto planned = [&] { return document().plan->workload.response_tokens.max; };
  EXPECT_EQ(limit->value(), planned());
  const int mean = number("Response tokens")->value();
  number("Response tokens")->setValue(mean / 2);
  const int at_once = limit->value();
  ASSERT_TRUE(answered({.response_tokens = mean / 2}));
  EXPECT_EQ(at_once, planned());
  // One that is set stays, whatever the mean becomes.
  const int longest = 3 * mean;
  limit->setValue(longest);
  ASSERT_TRUE(answered({.response_tokens = mean / 2, .longest_response = longest}));
  EXPECT_EQ(planned(), longest);
  number("Response tokens")->setValue(mean);
  ASSERT_TRUE(answered({.longest_response = longest}));
  EXPECT_EQ(planned(), longest);
  EXPECT_EQ(limit->value(), longest);
}

// Whose number divides the prompts: arrows and what is typed keep to it, as the slider does.
TEST_F(Sliders, PromptsAreWholeMiniBatches) {
  PlanQuery query = small_query();
  query.workload = "grpo-7b-1k";
  ask(query);
  QSpinBox* prompts = number("Prompts a step");
  const auto batches = static_cast<int>(document().plan->workload.mini_batches);
  ASSERT_GT(batches, 1);
  const int before = prompts->value();
  prompts->stepUp();
  EXPECT_EQ(prompts->value(), before + batches);
  ASSERT_TRUE(answered({.prompts_per_step = before + batches}));
  prompts->setFocus();
  prompts->selectAll();
  QTest::keyClicks(prompts, QString::number(before - batches + 1));
  QTest::keyClick(prompts, Qt::Key_Return);
  EXPECT_EQ(prompts->value(), before - batches);
  ASSERT_TRUE(answered({.prompts_per_step = before - batches}));
}

TEST_F(Sliders, PlanWhileTheyMoveAndAreOneEdit) {
  ask(small_query());
  const double before = document().plan->prediction.step_s.value;
  StepSlider* prompts = slider("Prompts a step");
  ASSERT_TRUE(prompts->isEnabled());
  std::set<std::int64_t> planned;
  drag(prompts, prompts->value() - 4, [&] {
    ASSERT_TRUE(wait_for([&] {
      return document().valid() && !document().planning &&
             document().plan->workload.prompts_per_step == number("Prompts a step")->value();
    }));
    planned.insert(document().plan->workload.prompts_per_step);
  });
  EXPECT_GE(planned.size(), 4u);  // before it is let go
  EXPECT_TRUE(prompts->isSliderDown());
  let_go(prompts);
  ASSERT_TRUE(answered({.prompts_per_step = number("Prompts a step")->value()}));
  rest(300);
  EXPECT_LT(document().plan->prediction.step_s.value, before);
  EXPECT_TRUE(window.session().canUndo());
  QTest::keyClick(&window, Qt::Key_Z, Qt::ControlModifier);
  EXPECT_EQ(document().question, small_query());
  EXPECT_FALSE(window.session().canUndo());
  ASSERT_TRUE(answered({}));
  EXPECT_EQ(document().plan->prediction.step_s.value, before);
  EXPECT_EQ(number("Prompts a step")->value(), document().plan->workload.prompts_per_step);
}

/// A hand that never rests: what it passes is left out, and plans are shown all the while.
TEST_F(Sliders, AreFollowedWhileTheyNeverRest) {
  ask(small_query());
  StepSlider* tokens = slider("Response tokens");
  const int from = tokens->value();
  int at = from, step = -1, moves = 0;
  std::set<double> shown;
  const QObject listener;
  // The next position is asked for in the events that follow a plan: it stands there in between.
  QObject::connect(&window.session(), &Session::planSelected, &listener, [&](const Plan& plan) {
    if (document().valid()) shown.insert(plan.workload.response_tokens.mean);
  });
  QTest::mousePress(tokens, Qt::LeftButton, {}, handle(tokens, at));
  EXPECT_TRUE(wait_for([&] {
    if (std::abs(at + step - from) > 8) step = -step;
    at += step;
    QTest::mouseMove(tokens, handle(tokens, at));
    ++moves;
    return shown.size() >= 5;
  })) << shown.size()
      << " plans in " << moves << " moves";
  EXPECT_TRUE(tokens->isSliderDown());
  let_go(tokens);
  ASSERT_TRUE(wait_for([&] {
    return document().valid() && !document().planning &&
           std::llround(document().plan->workload.response_tokens.mean) ==
               number("Response tokens")->value();
  }));
  QTest::keyClick(&window, Qt::Key_Z, Qt::ControlModifier);
  EXPECT_EQ(document().question, small_query()) << "all of it is one edit";
}

/// The same numbers in a workload's file: the planner's own way to ask it.
TEST_F(Sliders, AskWhatAFileWithTheirNumbersAsks) {
  std::ofstream(folder.filePath("own.yaml").toStdString())
      << "version: 1\nalgorithm: grpo\nprompts_per_step: 128\nsamples_per_prompt: 8\n"
         "prompt_tokens: 256\nresponse_tokens: {mean: 300, cv: 0.5, max: 600}\n"
         "mini_batches: 4\nkl: loss\n";
  std::ofstream(folder.filePath("other.yaml").toStdString())
      << "version: 1\nalgorithm: ppo\nprompts_per_step: 64\nsamples_per_prompt: 4\n"
         "prompt_tokens: 512\nresponse_tokens: {mean: 450, cv: 0.5, max: 900}\n"
         "mini_batches: 4\nkl: loss\n";
  PlanQuery query = small_query();
  query.workload = folder.filePath("own.yaml").toStdString();
  ask(query);
  for (const auto& [name, value] : std::map<QString, int>{{"Prompts a step", 64},
                                                          {"Samples a prompt", 4},
                                                          {"Prompt tokens", 512},
                                                          {"Response tokens", 450}}) {
    number(name)->setFocus();
    number(name)->selectAll();
    QTest::keyClicks(number(name), QString::number(value));
    QTest::keyClick(number(name), Qt::Key_Return);
  }
  auto* algorithm = named<QComboBox>(window, "Algorithm");
  EXPECT_EQ(algorithm->currentText(), "grpo");
  EXPECT_FALSE(named<QComboBox>(window, "critic.tp")->isEnabled());
  algorithm->setFocus();
  QTest::keyClicks(algorithm, "p");
  EXPECT_TRUE(named<QComboBox>(window, "critic.tp")->isEnabled());
  ASSERT_TRUE(answered({64, 4, 450, 0, 512, "ppo"}));
  PlanQuery other = query;
  other.workload = folder.filePath("other.yaml").toStdString();
  Plan wanted = *std::get<SharedPlan>(answer(other).result);
  wanted.provenance.created = document().plan->provenance.created;
  EXPECT_EQ(document().plan->workload, wanted.workload);
  EXPECT_EQ(document().plan->prediction, wanted.prediction);
  // Another workload begins with its own numbers.
  window.explore().form()->choose(FileKind::workload, folder.filePath("other.yaml"));
  ASSERT_TRUE(answered({}));
  EXPECT_EQ(number("Response tokens")->value(), 450);
}

TEST_F(Sliders, APriceIsWhatTheClustersGpusCost) {
  ask(small_query());
  EXPECT_EQ(document().plan->cluster.price_per_gpu_hour, 0);
  auto* price = named<QDoubleSpinBox>(window, "Price a GPU hour");
  EXPECT_EQ(price->text(), "as the cluster says");
  price->setFocus();
  price->selectAll();
  QTest::keyClicks(price, "2.5");
  QTest::keyClick(price, Qt::Key_Return);
  ASSERT_TRUE(wait_for(
      [&] { return document().valid() && document().plan->cluster.price_per_gpu_hour == 2.5; }));
  QTest::keyClick(&window, Qt::Key_Z, Qt::ControlModifier);
  EXPECT_EQ(price->value(), 0);
  // Types keep what they cost beside one another.
  ClusterSpec mixed;
  mixed.price_per_gpu_hour = 2;
  mixed.groups.resize(2);
  mixed.groups[0].price_per_gpu_hour = 1;
  mixed.groups[1].price_per_gpu_hour = 3;
  mixed = priced(mixed, 4);
  EXPECT_EQ(mixed.price_per_gpu_hour, 4);
  EXPECT_EQ(mixed.groups[0].price_per_gpu_hour, 2);
  EXPECT_EQ(mixed.groups[1].price_per_gpu_hour, 6);
}

TEST_F(Sliders, KeysMoveThemAndTypedNumbersMoveThemToo) {
  ask(small_query());
  StepSlider* samples = slider("Samples a prompt");
  const int own = number("Samples a prompt")->value();
  samples->setFocus();
  QTest::keyClick(samples, Qt::Key_Right);
  EXPECT_GT(number("Samples a prompt")->value(), own);
  ASSERT_TRUE(answered({.samples_per_prompt = number("Samples a prompt")->value()}));
  const int there = samples->value();
  number("Samples a prompt")->setFocus();
  number("Samples a prompt")->selectAll();
  QTest::keyClicks(number("Samples a prompt"), "33");  // between two positions
  QTest::keyClick(number("Samples a prompt"), Qt::Key_Return);
  EXPECT_GT(samples->value(), there);
  ASSERT_TRUE(wait_for([&] { return document().question.batch.samples_per_prompt == 33; }));
  auto* risk = named<QDoubleSpinBox>(window, "Memory risk");
  slider("Memory risk")->setFocus();
  QTest::keyClick(slider("Memory risk"), Qt::Key_Left);
  EXPECT_DOUBLE_EQ(risk->value(), 1);  // below the usual 2 %
  ASSERT_TRUE(wait_for([&] { return document().question.risk == 0.01; }));
}

TEST_F(Sliders, WhatCannotBeIsToldAndAWheelThatPassesChangesNothing) {
  ask(small_query());
  QSpinBox* prompts = number("Prompts a step");
  prompts->setValue(1023);  // as a project may have it; what is typed is rounded
  ASSERT_TRUE(wait_for([&] { return !document().problems.empty(); }));
  const QString said = named<MessageBar>(window, "Answer")->text();
  EXPECT_TRUE(said.contains("mini_batches")) << said.toStdString();
  EXPECT_EQ(prompts->value(), 1023);
  StepSlider* tokens = slider("Response tokens");
  const int before = tokens->value();
  const QPoint centre = tokens->rect().center();
  QWheelEvent wheel(centre, tokens->mapToGlobal(centre), {}, {0, 240}, Qt::NoButton, Qt::NoModifier,
                    Qt::NoScrollPhase, false);
  QCoreApplication::sendEvent(tokens, &wheel);
  EXPECT_EQ(tokens->value(), before);
}

TEST_F(Sliders, NeverHoldTheEventLoopFiftyMilliseconds) {
  ask({.model = "qwen2.5-7b", .cluster = "h100-64", .workload = "ppo-7b-1k", .nodes = 8});
  StepSlider* tokens = slider("Response tokens");
  const double most = most_held();
  double hold = 1;
  for (int turn = 0; turn < 3 && hold >= most; ++turn) {
    const double longest = longest_hold([&] {
      drag(tokens, tokens->value() - 12, [] { rest(100); });
      let_go(tokens);
      ASSERT_TRUE(answered({.response_tokens = number("Response tokens")->value()}));
    });
    hold = std::min(hold, longest);
  }
  EXPECT_LT(hold, most);
  RecordProperty("longest_ms", static_cast<int>(1000 * hold));
}

TEST(Steps, AreWholeAndHaveTheWorkloadsOwn) {
  EXPECT_EQ(octave_steps(4, 1, 32, 2, 20), (std::vector<double>{4, 8, 12, 16, 20, 24, 32}));
  EXPECT_EQ(octave_steps(1, 1, 8, 4, 5), (std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(decade_steps(0.1, 2).size(), 5u);  // 0.1, 0.2, 0.5, 1, 2
}

}  // namespace
}  // namespace tessera::gui
