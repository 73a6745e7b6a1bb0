// SPDX-License-Identifier: GPL-3.0-or-later
// A run that is started, paused, continued and stopped in the window, on CPU ranks.
#include <gtest/gtest.h>

#include <QMessageBox>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSpinBox>
#include <map>
#include <memory>

#include "gui/pages/command_palette.h"
#include "gui/views/message_bar.h"
#include "planner/plan/plan.h"
#include "simulator/timeline/rank_status.h"
#include "tests/cli/programs.h"
#include "tests/gui/explore_flow.h"

namespace tessera::gui {
namespace {

/// Ranks load for a while on a busy machine.
template <class Condition>
bool wait_long(const Condition& condition) {
  for (int i = 0; i < 8; ++i) {
    if (wait_for(condition)) return true;
  }
  return false;
}

class Start : public ProgramTest {
 protected:
  static void SetUpTestSuite() {
    ProgramTest::SetUpTestSuite();
    std::ofstream(at("few.yaml")) << "version: 1\nalgorithm: grpo\nprompts_per_step: 4\n"
                                     "samples_per_prompt: 4\nprompt_tokens: 8\n"
                                     "response_tokens: {mean: 4, cv: 0, max: 4}\n"
                                     "mini_batches: 1\nepochs: 1\nkl: none\n";
    ASSERT_EQ(tessera::run("plan --model " + at("model") + " --cluster local-cpu --workload " +
                           at("few.yaml") + " --fix actor.tp=2 rollout.tp=2 actor.gpus=2 -o " +
                           at("few.json")),
              0);
    qputenv("PATH", qgetenv("PATH") + ":" + TESSERA_BINARY_DIR + "/cli");
    qputenv("CUDA_VISIBLE_DEVICES", "");
  }
  void SetUp() override { open("few.json"); }
  void open(const std::string& plan) {
    window = std::make_unique<MainWindow>();
    window->resize(1280, 800);
    window->show();
    ASSERT_TRUE(QTest::qWaitForWindowActive(window.get()));
    ASSERT_TRUE(window->openPlan(QString::fromStdString(at(plan))));
    QTest::keyClick(window.get(), Qt::Key_3, Qt::ControlModifier);
  }
  /// A dialog that was open before leaves the window inactive for a moment.
  void press(Qt::Key key) {
    window->activateWindow();
    ASSERT_TRUE(QTest::qWaitForWindowActive(window.get()));
    QTest::keyClick(window.get(), key);
  }
  /// In the place of the folder that the form proposes, as after Tab.
  static void typeFolder(QDialog& dialog, const std::string& folder) {
    auto* const field = tessera::gui::named<QLineEdit>(dialog, "Folder of the run");
    EXPECT_FALSE(field->text().isEmpty());
    field->selectAll();
    QTest::keyClicks(field, QString::fromStdString(folder));
  }
  /// Fills the form by keys; what is done with its buttons is `then`.
  template <class Then>
  void fill(const std::string& name, const Then& then) {
    with_dialog(window.get(), [this, name, then](QDialog& dialog) {
      QTest::keyClicks(tessera::gui::named<QComboBox>(dialog, "Run file"), "grpo-digits");
      auto* settings = tessera::gui::named<QPlainTextEdit>(dialog, "Settings of the run");
      QTest::keyClicks(
          settings,
          QString("data.train_files=[%1]").arg(QString::fromStdString(at("prompts.jsonl"))));
      QTest::keyClick(settings, Qt::Key_Return);
      QTest::keyClicks(settings, "trainer.total_training_steps=500");
      typeFolder(dialog, at(name));
      then(dialog);
      if (dialog.isVisible()) dialog.reject();
    });
    press(Qt::Key_F6);
  }
  static QPushButton* startOf(QDialog& dialog) {
    for (QPushButton* button : dialog.findChildren<QPushButton*>()) {
      if (button->text() == "S&tart") return button;
    }
    return nullptr;
  }
  static void clickStart(QDialog& dialog) {
    ASSERT_TRUE(startOf(dialog)->isEnabled())
        << tessera::gui::named<QLabel>(dialog, "What is missing")->text().toStdString();
    QTest::mouseClick(startOf(dialog), Qt::LeftButton);
  }
  RunFollower& followed() { return *window->session().run(); }
  bool waitForState(RunState state) {
    return wait_long([&] { return followed().summary().state == state; });
  }
  std::size_t steps() { return followed().steps()->steps().size(); }
  QString message() {
    return tessera::gui::named<MessageBar>(*window, "What is wrong with the run's files")->text();
  }

  std::unique_ptr<MainWindow> window;
};

// The run itself is who knows whether a run file is one. It is started elsewhere than where the
// prompts were chosen from, and the run file lies in a folder of its own.
TEST_F(Start, ARunFileThatTheWindowWroteIsOneThatRuns) {
  const QString before = QDir::currentPath();
  const QString folder = QString::fromStdString(at("elsewhere"));
  ASSERT_TRUE(QDir().mkpath(folder));
  const QString file = folder + "/written.yaml";
  with_dialog(window.get(), [this, file, folder](QDialog& start) {
    with_dialog(&start, [this, file](QDialog& dialog) {
      QTest::keyClicks(
          tessera::gui::named<QLineEdit>(dialog, "File of prompts"),
          QDir::current().relativeFilePath(QString::fromStdString(at("prompts.jsonl"))));
      auto* steps = tessera::gui::named<QSpinBox>(dialog, "Steps of the run");
      steps->selectAll();
      QTest::keyClicks(steps, "2");
      QPushButton* save = nullptr;
      for (QPushButton* button : dialog.findChildren<QPushButton*>()) {
        if (button->text() == "&Save...") save = button;
      }
      ASSERT_TRUE(save->isEnabled());
      answer_file_dialog(&dialog, file);
      QTest::mouseClick(save, Qt::LeftButton);
      if (dialog.isVisible()) dialog.reject();
    });
    for (QPushButton* button : start.findChildren<QPushButton*>()) {
      if (button->text() == "&Write one...") QTest::mouseClick(button, Qt::LeftButton);
    }
    EXPECT_EQ(tessera::gui::named<QComboBox>(start, "Run file")->currentText(), file);
    typeFolder(start, at("by_written"));
    QDir::setCurrent(folder);
    clickStart(start);
    if (start.isVisible()) start.reject();
  });
  press(Qt::Key_F6);
  QDir::setCurrent(before);
  ASSERT_TRUE(waitForState(RunState::finished)) << message().toStdString();
  EXPECT_EQ(steps(), 2u);
}

// Who has neither a GPU nor files gets a run that learns, and may end what it takes to begin.
TEST_F(Start, TheQuickstartMakesWhatItNeedsAndRuns) {
  const QString above = QString::fromStdString(at("tries"));
  ASSERT_TRUE(QDir().mkpath(above));
  const auto press_quickstart = [&] {
    answer_file_dialog(window.get(), above);
    window->activateWindow();
    ASSERT_TRUE(QTest::qWaitForWindowActive(window.get()));
    QTest::keyClick(window.get(), Qt::Key_F6, Qt::ShiftModifier);
  };
  press_quickstart();
  ASSERT_TRUE(wait_long([&] { return message().contains("measuring this machine"); }))
      << message().toStdString();
  EXPECT_EQ(window->run().quickstart()->text(), "Cancel the &quickstart");
  window->run().quickstart()->trigger();
  EXPECT_TRUE(message().contains("It was cancelled")) << message().toStdString();
  EXPECT_TRUE(fs::exists(at("tries/quickstart/model/config.json")));
  EXPECT_FALSE(fs::exists(at("tries/quickstart/calibration.json")));

  press_quickstart();
  ASSERT_TRUE(wait_long([&] { return message().contains("measuring this machine"); }))
      << message().toStdString();
  window->showPage(&window->understand());
  const fs::path run = at("tries/quickstart-2/run");
  ASSERT_TRUE(wait_long([&] { return followed().folder() == run; })) << message().toStdString();
  EXPECT_TRUE(window->understand().isVisible()) << "a page stays under its user's hands";
  ASSERT_TRUE(wait_long([&] { return steps() >= 2; })) << message().toStdString();
  EXPECT_EQ(followed().roughTimes(), RoughTimes::shared) << "it was measured for its plan";
  EXPECT_EQ(followed().rules()->violated(), 0) << followed().rules()->banner().toStdString();
  EXPECT_EQ(followed().ranks()->rowCount(), 4);
  window->session().tell(RunSignal::stop);
  EXPECT_TRUE(waitForState(RunState::stopped));
}

TEST_F(Start, ARunOutlivesTheWindowThatStartedIt) {
  fill("started", [](QDialog& dialog) { clickStart(dialog); });
  const fs::path run = at("started");
  ASSERT_TRUE(wait_long([&] { return followed().folder() == run; })) << message().toStdString();
  ASSERT_TRUE(wait_long([&] { return steps() >= 2; })) << text_of(at("started.log"));
  EXPECT_EQ(followed().summary().state, RunState::running);
  EXPECT_EQ(followed().ranks()->rowCount(), window->session().plan()->world_size());
  press(Qt::Key_F7);
  ASSERT_TRUE(waitForState(RunState::paused));
  const std::size_t then = steps();
  rest(1500);
  EXPECT_LE(steps(), then + 1);  // the last one's line may come late
  press(Qt::Key_F8);
  ASSERT_TRUE(wait_long([&] { return steps() >= then + 2; }));

  window.reset();
  const std::int64_t left = read_rank_statuses(run).at(0).step;
  ASSERT_TRUE(wait_long([&] { return read_rank_statuses(run).at(0).step >= left + 2; }));
  open("few.json");
  ASSERT_TRUE(window->openRun(QString::fromStdString(run.string())));
  ASSERT_TRUE(waitForState(RunState::running));
  with_dialog(window.get(), [](QDialog& dialog) {
    QTest::mouseClick(dynamic_cast<QMessageBox&>(dialog).button(QMessageBox::Yes), Qt::LeftButton);
  });
  press(Qt::Key_F9);
  ASSERT_TRUE(waitForState(RunState::stopped)) << followed().summary().text.toStdString();
  EXPECT_FALSE(fs::exists(at("started.plan.json")));

  // Its samples are those that its metrics sum up.
  window->session().samples()->want();
  ASSERT_TRUE(wait_long([&] {
    const auto& samples = window->session().samples()->model()->samples();
    return !samples.empty() && samples.back().step == followed().steps()->steps().back();
  }));
  std::map<std::int64_t, std::pair<double, int>> sums;
  for (const Sample& sample : window->session().samples()->model()->samples()) {
    sums[sample.step].first += sample.reward.value();
    ++sums[sample.step].second;
  }
  Problems problems;
  const auto metrics = read_metrics(run / "metrics.jsonl", problems);
  const StepNumbers& last = metrics->back();
  EXPECT_NEAR(sums.at(last.step).first / sums.at(last.step).second,
              last.data.at("critic/score/mean"), 1e-9);
}

TEST_F(Start, AStoppedRunGoesOnFromWhereItWas) {
  const auto answer = [this] {
    with_dialog(window.get(), [](QDialog& dialog) {
      QTest::mouseClick(dynamic_cast<QMessageBox&>(dialog).button(QMessageBox::Yes),
                        Qt::LeftButton);
    });
  };
  const auto resume = [&] {
    answer();
    window->activateWindow();
    ASSERT_TRUE(QTest::qWaitForWindowActive(window.get()));
    QTest::keyClick(window.get(), Qt::Key_F8, Qt::ShiftModifier);
  };
  const fs::path run = at("resumed");
  fill("resumed", [](QDialog& dialog) { clickStart(dialog); });
  ASSERT_TRUE(wait_long([&] { return steps() >= 2; })) << text_of(at("resumed.log"));
  EXPECT_FALSE(window->run().controls().back()->isEnabled());
  answer();
  press(Qt::Key_F9);
  ASSERT_TRUE(waitForState(RunState::stopped)) << followed().summary().text.toStdString();
  const std::int64_t saved = followed().left()->checkpoint.value();
  ASSERT_TRUE(wait_long([&] { return followed().steps()->steps().back() == saved; }));
  ASSERT_TRUE(wait_long([&] { return window->run().controls().back()->isEnabled(); }))
      << whyNot(*window->run().controls().back()).toStdString();

  resume();
  ASSERT_TRUE(wait_long([&] { return followed().steps()->steps().back() >= saved + 2; }))
      << message().toStdString() << text_of(at("resumed.log"));
  EXPECT_EQ(followed().summary().state, RunState::running);
  EXPECT_EQ(message(), "");
  EXPECT_TRUE(text_of(run / "log.txt").find("[Resume] from step " + std::to_string(saved)) !=
              std::string::npos)
      << text_of(run / "log.txt");
  // Every step once, also in the window.
  const auto& numbers = followed().steps()->steps();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(numbers[i], static_cast<std::int64_t>(i + 1));
  }

  // Its window goes, and it goes on.
  window.reset();
  const std::int64_t left = read_rank_statuses(run).at(0).step;
  ASSERT_TRUE(wait_long([&] { return read_rank_statuses(run).at(0).step >= left + 2; }));
  open("few.json");
  ASSERT_TRUE(window->openRun(QString::fromStdString(run.string())));
  ASSERT_TRUE(waitForState(RunState::running));
  answer();
  press(Qt::Key_F9);
  ASSERT_TRUE(waitForState(RunState::stopped)) << followed().summary().text.toStdString();
}

TEST_F(Start, LeavingTheFormStartsNothing) {
  bool enabled = false;
  fill("left", [&](QDialog& dialog) {
    enabled = startOf(dialog)->isEnabled();
    QTest::keyClick(&dialog, Qt::Key_Escape);
  });
  EXPECT_TRUE(enabled);
  rest(300);
  EXPECT_FALSE(fs::exists(at("left")) || fs::exists(at("left.log")) ||
               fs::exists(at("left.plan.json")));
}

TEST_F(Start, AFolderThatExistsIsRefusedInTheForm) {
  fs::create_directory(at("taken"));
  QString why;
  fill("taken", [&](QDialog& dialog) {
    EXPECT_FALSE(startOf(dialog)->isEnabled());
    why = tessera::gui::named<QLabel>(dialog, "What is missing")->text();
  });
  EXPECT_TRUE(why.contains("taken exists")) << why.toStdString();
}

TEST_F(Start, MissingGpusAreToldAndNothingIsLeft) {
  ASSERT_EQ(run("plan --model " + at("model") + " --cluster h100-8 --workload grpo-digits -o " +
                at("gpus.json")),
            0);
  window.reset();
  open("gpus.json");
  fill("gpus", [](QDialog& dialog) { clickStart(dialog); });
  ASSERT_TRUE(wait_long([&] { return !message().isEmpty() && !message().startsWith("Starting"); }));
  EXPECT_TRUE(message().contains("0 are visible")) << message().toStdString();
  EXPECT_TRUE(followed().folder().empty());
  EXPECT_FALSE(fs::exists(at("gpus")) || fs::exists(at("gpus.log")) ||
               fs::exists(at("gpus.plan.json")));
}

}  // namespace
}  // namespace tessera::gui

int main(int argc, char** argv) {
  QApplication application(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
