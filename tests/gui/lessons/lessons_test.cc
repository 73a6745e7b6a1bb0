// SPDX-License-Identifier: GPL-3.0-or-later
// What a run teaches, in the window: the constants that `tessera learn` refits, and the changes
// that `tessera advise` names.
#include "gui/lessons/run_lessons.h"

#include <gtest/gtest.h>

#include <QApplication>
#include <QClipboard>
#include <QDialogButtonBox>
#include <QDir>
#include <QFile>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QTemporaryDir>
#include <QTest>
#include <fstream>
#include <iterator>

#include "cost_models/documents/stopped.h"
#include "cost_models/fit/derived_calibration.h"
#include "gui/document/headline.h"
#include "gui/lessons/advice_dialog.h"
#include "gui/pages/main_window.h"
#include "planner/engines/read_plan.h"
#include "planner/plan/plan_json.h"
#include "simulator/learn/learned_report.h"
#include "simulator/learn/measured_run.h"
#include "simulator/timeline/metrics.h"
#include "tests/gui/explore_flow.h"

namespace tessera::gui {
namespace {

const QString kRun = QString(TESSERA_SOURCE_DIR) + "/tests/gui/data/run";

/// What the command line learns from the sample run.
std::string learned_by_the_command() {
  Problems problems;
  const std::filesystem::path folder = kRun.toStdString();
  const auto plan = read_plan(folder / "plan.json", problems);
  const auto steps = read_metrics(folder / "metrics.jsonl", problems);
  const auto run = measured_run(folder.string(), *plan, *steps, std::nullopt, problems);
  const auto base = calibration_named(plan->provenance.calibration, plan->cluster, problems);
  EXPECT_TRUE(problems.empty());
  return to_text(learn_from_runs({*run}, *base));
}

struct Lessons : testing::Test {
  MainWindow window;
  QTemporaryDir folder;

  void SetUp() override {
    window.resize(1280, 720);
    window.show();
    ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
    ASSERT_TRUE(window.openRun(kRun, false));
  }
  static QPushButton* button(QWidget& within, const QString& text) {
    for (QPushButton* button : within.findChildren<QPushButton*>()) {
      if (button->text() == text) return button;
    }
    return nullptr;
  }
  static std::string text_of(const QString& file) {
    std::ifstream in(file.toStdString());
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// The dialog that a button of the page opens.
  QDialog* opened(const QString& text) {
    QTest::mouseClick(button(window, text), Qt::LeftButton);
    QDialog* dialog = nullptr;
    EXPECT_TRUE(wait_for([&] {
      dialog = window.findChild<QDialog*>();
      return dialog != nullptr && dialog->isVisible();
    }));
    return dialog;
  }
};

TEST_F(Lessons, LearnSaysWhatTheCommandSaysAndSavesTheConstants) {
  const QString file = folder.filePath("learned.json");
  ASSERT_TRUE(button(window, "&Learn")->isEnabled());
  QDialog* dialog = opened("&Learn");
  ASSERT_NE(dialog, nullptr);
  // Its first line wraps above the rest.
  const QLabel* worth = dialog->findChild<QLabel*>();
  EXPECT_TRUE(worth->wordWrap());
  EXPECT_TRUE(worth->text().startsWith("noise, not worth using")) << worth->text().toStdString();
  const QString said = worth->text() + "\n" + dialog->findChild<QPlainTextEdit*>()->toPlainText();
  EXPECT_EQ(said.trimmed().toStdString(),
            QString::fromStdString(learned_by_the_command()).trimmed().toStdString());
  // Its steps differ by 17 % among themselves: Enter does not save what they teach.
  auto* buttons = dialog->findChild<QDialogButtonBox*>();
  EXPECT_TRUE(buttons->button(QDialogButtonBox::Close)->isDefault());
  EXPECT_EQ(buttons->button(QDialogButtonBox::Save)->text(),
            "Save the calibration all the same...");
  answer_file_dialog(&window, file);
  QTest::mouseClick(buttons->button(QDialogButtonBox::Save), Qt::LeftButton);
  EXPECT_TRUE(wait_for([&] { return QFile::exists(file); }));
}

// Advice is read before anything is written, and what is written takes the place of nothing.
TEST_F(Lessons, AdviceIsReadFirstAndItsFilesReplaceNone) {
  const QString own = folder.filePath("plan.json");
  std::ofstream(own.toStdString()) << "my own";
  const QString before = QGuiApplication::clipboard()->text();
  QDialog* dialog = opened("&Advise...");
  ASSERT_NE(dialog, nullptr);
  EXPECT_EQ(QDir(folder.path()).entryList(QDir::Files | QDir::NoDotAndDotDot),
            QStringList{"plan.json"});
  const auto commands = dialog->findChildren<QLineEdit*>();
  ASSERT_FALSE(commands.isEmpty());
  auto* buttons = dialog->findChild<QDialogButtonBox*>();
  EXPECT_TRUE(buttons->button(QDialogButtonBox::Close)->isDefault());
  EXPECT_FALSE(buttons->button(QDialogButtonBox::Save)->isDefault());
  buttons->button(QDialogButtonBox::Save)->setFocus();
  EXPECT_FALSE(buttons->button(QDialogButtonBox::Save)->isDefault()) << "Enter saves nothing";
  // By constants that are noise: no change promises anything.
  QStringList said;
  for (const QLabel* label : dialog->findChildren<QLabel*>()) said << label->text();
  EXPECT_EQ(said.filter("they are guesses").size(), 1) << said.join('\n').toStdString();
  EXPECT_EQ(said.filter(". perhaps ").size(), commands.size());
  EXPECT_TRUE(said.filter("<b>").isEmpty());
  EXPECT_TRUE(commands[0]->text().startsWith("tessera plan --from plan.json --calibration"));
  // Nothing of it is cut: whatever is a sentence wraps within the dialog.
  EXPECT_EQ(dialog->findChild<QScrollArea*>()->horizontalScrollBarPolicy(), Qt::ScrollBarAlwaysOff);
  EXPECT_LE(dialog->width(), window.width());
  for (const QLabel* label : dialog->findChildren<QLabel*>()) {
    EXPECT_TRUE(label->wordWrap()) << label->text().toStdString();
  }
  answer_file_dialog(&window, folder.path());
  QTest::mouseClick(button(*dialog, "Copy"), Qt::LeftButton);
  const QString into = folder.filePath("advice");
  ASSERT_TRUE(QFile::exists(into + "/plan.json"));
  EXPECT_TRUE(QFile::exists(into + "/calibration.json"));
  EXPECT_EQ(text_of(own), "my own");
  const QString copied = QGuiApplication::clipboard()->text();
  EXPECT_NE(copied, before);
  EXPECT_EQ(copied, commands[0]->text());
  EXPECT_TRUE(copied.contains("--from " + into + "/plan.json --calibration " + into +
                              "/calibration.json --fix "))
      << copied.toStdString();
  dialog->reject();
}

TEST_F(Lessons, NobodyWaitsForALessonThatIsCancelled) {
  Problems problems;
  const auto ran = read_plan((kRun + "/plan.json").toStdString(), problems);
  ASSERT_TRUE(ran);
  std::stop_source nobody_waits;
  nobody_waits.request_stop();
  EXPECT_THROW(learned_from(kRun.toStdString(), *ran, nobody_waits.get_token()), Stopped);
  EXPECT_THROW(advice_for(kRun.toStdString(), *ran, nobody_waits.get_token()), Stopped);
}

// As the command does: by the learned constants, and with what the change fixes.
TEST_F(Lessons, AChangeIsPlannedInTheWindow) {
  QDialog* dialog = opened("&Advise...");
  ASSERT_NE(dialog, nullptr);
  Problems problems;
  const auto ran = read_plan((kRun + "/plan.json").toStdString(), problems);
  ASSERT_TRUE(ran);
  const Lesson lesson = advice_for(kRun.toStdString(), *ran);
  ASSERT_FALSE(lesson.advice.changes.empty());
  const AdvisedChange& first = lesson.advice.changes.front();
  QTest::mouseClick(button(*dialog, "Plan with it"), Qt::LeftButton);
  EXPECT_TRUE(window.explore().isVisible());
  ASSERT_TRUE(wait_for([&] { return !window.session().isBusy(); }));
  const Document& document = window.session().document();
  ASSERT_TRUE(document.valid()) << document.file_problems.toStdString();
  EXPECT_EQ(document.question.fixed, first.settings);
  EXPECT_NEAR(document.plan->prediction.step_s.value, first.step_s.value,
              1e-6 * first.step_s.value);
  EXPECT_TRUE(window.session().canUndo());
}

// A run of another program says nothing of the plan that happens to be shown: as the commands,
// which want --plan, nothing takes it for that run's until somebody says so.
TEST_F(Lessons, ARunWithoutAPlanIsHeldAgainstNoneUntilOneIsChosen) {
  RunFollower& run = *window.session().run();
  const SharedPlan shown = window.session().plan();
  ASSERT_TRUE(shown);
  std::ofstream steps(folder.filePath("metrics.jsonl").toStdString());
  for (int step = 1; step <= 8; ++step) {
    steps << "{\"step\": " << step << ", \"data\": {\"timing_s/gen\": " << 2 + 0.01 * step
          << ", \"timing_s/step\": " << 3 + 0.01 * step << "}}\n";
  }
  steps.close();
  ASSERT_TRUE(window.openRun(folder.path(), false));
  auto* line = named<MessageBar>(window, "Largest difference from the prediction");
  EXPECT_EQ(line->text(), "The run has no plan: nothing is compared with a prediction");
  EXPECT_EQ(run.comparison()->rowCount(), 0);
  EXPECT_EQ(run.plan(), nullptr);
  for (const char* text : {"&Learn", "&Advise..."}) {
    EXPECT_FALSE(button(window, text)->isEnabled()) << text;
    EXPECT_TRUE(button(window, text)->toolTip().contains("no plan")) << text;
  }
  QPushButton* choose = button(*line, "It ran the plan on Explore: " + planTitle(*shown));
  ASSERT_NE(choose, nullptr);
  QTest::mouseClick(choose, Qt::LeftButton);
  ASSERT_TRUE(wait_for([&] { return run.plan() == shown.get(); }));
  EXPECT_GT(run.comparison()->rowCount(), 0);
  EXPECT_TRUE(line->text().startsWith("Held against the plan " + planTitle(*shown) +
                                      ", which was chosen for it"))
      << line->text().toStdString();
  EXPECT_TRUE(button(window, "&Learn")->isEnabled());
  // The next run has nothing of it.
  ASSERT_TRUE(window.openRun(kRun, false));
  ASSERT_TRUE(window.openRun(folder.path(), false));
  EXPECT_EQ(run.plan(), nullptr);
}

}  // namespace
}  // namespace tessera::gui
