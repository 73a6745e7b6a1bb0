// SPDX-License-Identifier: GPL-3.0-or-later
// What the window says of a plan whose file was edited, and the job that it exports.
#include <gtest/gtest.h>

#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTableView>
#include <QTemporaryDir>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cost_models/documents/problem.h"
#include "gui/document/headline.h"
#include "gui/pages/export_job.h"
#include "gui/pages/main_window.h"
#include "gui/plans/opened_plan.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_json.h"
#include "tests/gui/explore_flow.h"
#include "tests/gui/sample_plans.h"
#include "tests/gui/window_flow.h"

namespace tessera::gui {
namespace {

TEST(OpenedPlan, AnEditedPredictionIsNotShownAsTheTruth) {
  QTemporaryDir folder;
  Plan edited = free_plan();
  const double true_step = edited.prediction.step_s.value;
  edited.prediction.step_s = Seconds{true_step / 100};
  const QString file = folder.filePath("edited.json");
  write_plan(edited, file.toStdString());
  MainWindow window;
  ASSERT_TRUE(window.openPlan(file));
  const Document& document = window.session().document();
  EXPECT_NEAR(document.plan->prediction.step_s.value, true_step, 1e-9 * true_step);
  EXPECT_TRUE(document.file_problems.contains("edited since its search"))
      << document.file_problems.toStdString();
  const QString line = headline_of(*document.plan, std::nullopt, {}).largest;
  EXPECT_LE(line.section(' ', 0, 0).toInt(), 100) << line.toStdString();
}

TEST(OpenedPlan, APlanOfASearchIsShownAsItsFileSays) {
  const OpenedPlan shown = opened(free_plan());
  EXPECT_TRUE(shown.notice.isEmpty()) << shown.notice.toStdString();
  EXPECT_EQ(to_json(*shown.plan), to_json(free_plan()));
}

std::string text_of(const std::filesystem::path& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// free_plan() is for the own engine: its launchers can run it, verl cannot.
TEST(ExportJob, WritesWhatTheTargetRunsAndSaysWhyAnotherCannot) {
  QTemporaryDir folder;
  ExportJob job(std::make_shared<const Plan>(free_plan()));
  auto* target = named<QComboBox>(job, "For whom");
  auto* files = named<QPlainTextEdit>(job, "Files, or why there are none");
  auto* write = [&] {
    for (QPushButton* button : job.findChildren<QPushButton*>()) {
      if (button->text().remove('&') == "Write") return button;
    }
    return static_cast<QPushButton*>(nullptr);
  }();
  ASSERT_NE(write, nullptr);
  EXPECT_TRUE(target->currentText().startsWith("torchrun")) << target->currentText().toStdString();
  EXPECT_TRUE(write->isEnabled());

  target->setCurrentIndex(target->findText("verl:", Qt::MatchStartsWith));
  EXPECT_FALSE(write->isEnabled());
  EXPECT_TRUE(files->toPlainText().contains("--engine verl")) << files->toPlainText().toStdString();

  target->setCurrentIndex(target->findText("slurm", Qt::MatchStartsWith));
  named<QLineEdit>(job, "Folder")->setText(folder.filePath("job"));
  ASSERT_TRUE(write->isEnabled());
  job.write();
  Problems problems;
  const auto made = export_plan(free_plan(), *export_target_from("slurm", problems), {}, problems);
  ASSERT_TRUE(made);
  ASSERT_FALSE(made->files.empty());
  for (const ExportedFile& file : made->files) {
    EXPECT_TRUE(files->toPlainText().contains(QString::fromStdString(file.name)));
    EXPECT_EQ(text_of(folder.filePath("job").toStdString() + "/" + file.name), file.text);
  }
  named<QLineEdit>(job, "Folder")->clear();
  EXPECT_FALSE(write->isEnabled());
}

TEST(PlanTable, AFilterThatNothingPassesSaysSo) {
  MainWindow window;
  window.show();
  QTemporaryDir folder;
  const QString file = folder.filePath("plan.json");
  write_plan(free_plan(), file.toStdString());
  ASSERT_TRUE(window.openPlan(file));
  auto* filter = named<QLineEdit>(window, "Filter of the ranked plans");
  const auto said = [&] {
    for (QLabel* label : window.findChildren<QLabel*>()) {
      if (label->isVisible() && label->text().startsWith("None of these")) return true;
    }
    return false;
  };
  EXPECT_FALSE(said());
  filter->setText("tp4096");
  EXPECT_EQ(named<QTableView>(window, "Ranked plans")->model()->rowCount(), 0);
  EXPECT_TRUE(said());
  filter->clear();
  EXPECT_FALSE(said());
}

}  // namespace
}  // namespace tessera::gui
