// SPDX-License-Identifier: GPL-3.0-or-later
// What the window says of a plan whose file was edited, and the job that it exports.
#include <gtest/gtest.h>

#include <QComboBox>
#include <QDir>
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
#include "gui/document/plan_answer.h"
#include "gui/document/text.h"
#include "gui/explore/shown_answer.h"
#include "gui/pages/command_palette.h"
#include "gui/pages/export_job.h"
#include "gui/pages/main_window.h"
#include "gui/plans/opened_plan.h"
#include "planner/explain/report.h"
#include "planner/plan/certified.h"
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
  // Beside it stand no plans that were searched for beside another one.
  ASSERT_FALSE(edited.certificate.runner_up.empty());
  const PlanTableModel& rows = *window.session().plans();
  EXPECT_EQ(rows.rowCount(), 1);
  EXPECT_EQ(rows.index(0, PlanTableModel::Worse).data().toString(), "-") << "nothing is best";
  EXPECT_TRUE(document.file_problems.contains("The other plans of its file"));
  const QString line = headline_of(*document.plan, std::nullopt, {}).largest;
  EXPECT_LE(line.section(' ', 0, 0).toInt(), 100) << line.toStdString();
  const ShownAnswer shown = shown_answer(window.session());
  EXPECT_TRUE(shown.line.rivals.startsWith("not compared: the plan is "))
      << shown.line.rivals.toStdString();
  EXPECT_TRUE(shown.proof.startsWith("No search has proven this plan: ")) << "nor is its proof";
  // What is searched for next is certified again.
  window.session().ask({.model = "qwen2.5-0.5b", .cluster = "h100-8", .workload = "ppo-7b-1k"});
  ASSERT_TRUE(wait_for([&] { return !window.session().isBusy(); }));
  EXPECT_TRUE(shown_answer(window.session()).proof.startsWith("Proven best"));
  EXPECT_EQ(rows.index(0, PlanTableModel::Worse).data().toString(), "best");
}

TEST(OpenedPlan, APlanOfASearchIsShownAsItsFileSays) {
  const OpenedPlan shown = opened(free_plan());
  EXPECT_TRUE(shown.notice.isEmpty()) << shown.notice.toStdString();
  EXPECT_EQ(to_json(*shown.plan), to_json(free_plan()));
}

// What was searched for beside it is not known of a file.
TEST(OpenedPlan, WithoutOtherPlansDoesNotSayThatNoneWasFound) {
  const QTemporaryDir folder;
  Plan alone = free_plan();
  alone.certificate.runner_up.clear();
  alone.certificate.digest = certified_digest(alone);  // as a search that found none seals it
  write_plan(alone, folder.filePath("alone.json").toStdString());
  Session session;
  ASSERT_TRUE(session.openPlan(folder.filePath("alone.json")));
  EXPECT_EQ(shown_answer(session).line.rivals, "its file has no other plan");
}

// A plan that was only the best of what was fixed is none of the best ones, wherever it is shown.
TEST(OpenedPlan, OfARowThatLostSaysWhatWasFixedAndHowFarItIsBehind) {
  const QTemporaryDir folder;
  const QString file = folder.filePath("worse.json");
  const PlanQuery query{.model = "qwen2.5-0.5b", .cluster = "h100-8", .workload = "ppo-7b-1k"};
  Session live;
  live.ask(query);
  ASSERT_TRUE(wait_for([&] { return !live.isBusy(); }));
  const int row = live.plans()->rowCount() - 1;
  const RunnerUp lost = live.plans()->row(row).summary;
  const double best = live.plan()->prediction.step_s.value;
  const QString behind = differenceText(lost.step_s.value / best - 1);
  live.selectRow(row);
  ASSERT_TRUE(wait_for([&] { return !live.isBusy() && live.shownRow() == row; }));
  EXPECT_TRUE(shown_answer(live).proof.startsWith("Proven best of what is fixed"));
  ASSERT_TRUE(live.savePlan(file));
  Session session;
  ASSERT_TRUE(session.openPlan(file));
  const Document& document = session.document();
  EXPECT_EQ(document.uncertified, "");
  const std::vector<std::string>& fixed = document.plan->certificate.fixed;
  EXPECT_FALSE(fixed.empty());
  EXPECT_EQ(document.question.fixed, fixed) << "it fills the form";
  const ShownAnswer shown = shown_answer(session);
  EXPECT_EQ(shown.line.rivals, "best of what is fixed, " + behind + " behind the best plan");
  EXPECT_TRUE(shown.proof.startsWith("Proven best of what is fixed")) << shown.proof.toStdString();
  EXPECT_TRUE(shown.proof.contains("Only plans with " + QString::fromStdString(fixed.front())));
  EXPECT_TRUE(shown.proof.contains("It is " + behind + " behind the best plan without that"));
  EXPECT_NE(session.plans()->index(0, PlanTableModel::Worse).data().toString(), "best");
  EXPECT_EQ(session.plans()
                ->headerData(PlanTableModel::Worse, Qt::Horizontal, Qt::DisplayRole)
                .toString(),
            "Against row 1");
  const std::string report = describe(*document.plan);
  EXPECT_NE(report.find("proven best of what is fixed"), std::string::npos) << report;
  EXPECT_NE(report.find(" % behind\n"), std::string::npos) << report;
}

// Qwen2-7B has the sizes of Qwen2.5-7B, and other weights.
TEST(OpenedPlan, KeepsTheNameOfItsModel) {
  for (const char* name : {"qwen2.5-7b", "qwen2-7b"}) {
    const PlanAnswer found = answer({.model = name, .cluster = "h200-8", .workload = "grpo-7b-1k"});
    EXPECT_EQ(query_of(std::get<SharedPlan>(found.result)).model, name);
  }
  // A folder of no preset's name, too.
  const QTemporaryDir above;
  const std::filesystem::path own = above.filePath("tuned").toStdString();
  std::filesystem::copy(std::filesystem::path(TESSERA_SOURCE_DIR) / "configs/models/qwen2.5-0.5b",
                        own);
  const PlanAnswer found =
      answer({.model = own.string(), .cluster = "h100-8", .workload = "grpo-7b-1k"});
  EXPECT_EQ(query_of(std::get<SharedPlan>(found.result)).model, own.string());
  // A folder that is not here names no preset of equal sizes: the plan itself says what is asked.
  Plan moved = *std::get<SharedPlan>(found.result);
  std::filesystem::remove_all(own);
  PlanQuery query = query_of(shared(moved));
  EXPECT_EQ(query.model, "");
  query.fixed = {"actor.tp=2"};
  const PlanAnswer edited = answer(query);
  ASSERT_TRUE(std::holds_alternative<SharedPlan>(edited.result));
  EXPECT_EQ(std::get<SharedPlan>(edited.result)->models.at("actor").path, own.string());
  // A repository does.
  moved.models.at("actor").path = "Qwen/Qwen2.5-0.5B";
  EXPECT_EQ(query_of(shared(moved)).model, "qwen2.5-0.5b");
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
  const QString why = files->toPlainText();
  EXPECT_TRUE(why.startsWith("This plan is for the engine tessera, and verl with FSDP cannot run"))
      << why.toStdString();
  EXPECT_FALSE(why.contains("/roles/") || why.contains("--engine")) << why.toStdString();
  auto* plan_for = job.findChild<QPushButton*>("plan_for");
  EXPECT_FALSE(plan_for->isHidden());
  EXPECT_TRUE(plan_for->text().startsWith("&Plan for verl"));

  target->setCurrentIndex(target->findText("slurm", Qt::MatchStartsWith));
  named<QLineEdit>(job, "Folder")->setText(folder.filePath("job"));
  ASSERT_TRUE(write->isEnabled());
  EXPECT_TRUE(plan_for->isHidden());
  job.accept();
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

// What a folder holds already is not lost without a word.
TEST(ExportJob, TakesAFreeNameAndSaysWhatItWouldReplace) {
  QTemporaryDir folder;
  const QString before = QDir::currentPath();
  ASSERT_TRUE(QDir::setCurrent(folder.path()));
  ASSERT_TRUE(QDir().mkdir("job"));
  ExportJob first(std::make_shared<const Plan>(free_plan()));
  EXPECT_EQ(first.folder(), "job-2");
  first.accept();
  ExportJob second(std::make_shared<const Plan>(free_plan()));
  EXPECT_EQ(second.folder(), "job-3");
  const auto has_button = [&](const QString& text) {
    for (QPushButton* button : second.findChildren<QPushButton*>()) {
      if (button->text().remove('&') == text) return true;
    }
    return false;
  };
  EXPECT_TRUE(has_button("Write"));
  named<QLineEdit>(second, "Folder")->setText("job-2");
  EXPECT_TRUE(has_button("Overwrite"));
  named<QLineEdit>(second, "Folder")->setText("job");
  EXPECT_TRUE(has_button("Write")) << "it has none of these files";
  QDir::setCurrent(before);
}

// Where the target cannot run the plan, its own plan is a click away.
TEST(ExportJob, PlansForTheTargetsEngineAndExportsThatPlan) {
  QTemporaryDir folder;
  MainWindow window;
  window.show();
  window.session().ask({.model = "qwen2.5-0.5b",
                        .cluster = "h100-8",
                        .workload = "ppo-7b-1k",
                        .fixed = {"actor.tp=2"}});
  ASSERT_TRUE(wait_for([&] { return !window.session().isBusy(); }));
  const auto press_export = [&] { QTest::keyClick(&window, Qt::Key_J, Qt::ControlModifier); };
  with_dialog(&window, [&](QDialog& dialog) {
    auto* target = named<QComboBox>(dialog, "For whom");
    target->setCurrentIndex(target->findText("ray:", Qt::MatchStartsWith));
    with_dialog(&window, [&](QDialog& again) {  // opens once that plan is there
      EXPECT_TRUE(named<QComboBox>(again, "For whom")->currentText().startsWith("ray:"));
      named<QLineEdit>(again, "Folder")->setText(folder.filePath("job"));
      QTest::keyClick(named<QLineEdit>(again, "Folder"), Qt::Key_Return);  // writes
    });
    dialog.findChild<QPushButton*>("plan_for")->click();
  });
  press_export();
  ASSERT_TRUE(wait_for(
      [&] { return std::filesystem::exists(folder.filePath("job").toStdString() + "/NOTES.md"); }));
  const Document& document = window.session().document();
  EXPECT_EQ(document.question.engine, document.plan->engine);
  EXPECT_EQ(document.plan->engine.substr(0, 4), "verl");
  EXPECT_EQ(document.question.fixed, std::vector<std::string>{"actor.tp=2"});
  EXPECT_EQ(document.plan->find(Role::actor)->layout.tp, 2) << "Megatron holds what FSDP cannot";
}

// What is shown by then answers another question.
TEST(ExportJob, IsNotExportedOnceItsQuestionWasTakenBack) {
  MainWindow window;
  window.show();
  const auto at_rest = [&] { return !window.session().isBusy(); };
  window.session().ask({.model = "qwen2.5-0.5b", .cluster = "h100-8", .workload = "ppo-7b-1k"});
  ASSERT_TRUE(wait_for(at_rest));
  with_dialog(&window, [&](QDialog& dialog) {
    auto* target = named<QComboBox>(dialog, "For whom");
    target->setCurrentIndex(target->findText("ray:", Qt::MatchStartsWith));
    dialog.findChild<QPushButton*>("plan_for")->click();
  });
  QTest::keyClick(&window, Qt::Key_J, Qt::ControlModifier);
  ASSERT_EQ(window.session().document().question.engine.substr(0, 4), "verl");
  QObject context;
  bool opened = false;
  with_dialog(&context, [&](QDialog& dialog) {
    opened = true;
    dialog.reject();
  });
  window.session().undo();
  ASSERT_TRUE(wait_for(at_rest));
  rest(200);
  EXPECT_FALSE(opened);
}

// A plan that is cut by layers and heads is Megatron's kind, whatever else verl can be told to use.
TEST(ExportJob, OffersTheUsualEngineThatHoldsThePlanAndHasItsModel) {
  const PlanAnswer found = answer({.model = "qwen2.5-32b",
                                   .cluster = "h800-64",
                                   .workload = "grpo-7b-1k",
                                   .fixed = {"actor.tp=8"}});
  ExportJob job(std::get<SharedPlan>(found.result));
  auto* target = named<QComboBox>(job, "For whom");
  auto* plan_for = job.findChild<QPushButton*>("plan_for");
  const auto offered = [&](const QString& name) {
    target->setCurrentIndex(target->findText(name, Qt::MatchStartsWith));
    return plan_for->text();
  };
  EXPECT_EQ(offered("verl:"), "&Plan for verl-megatron");
  EXPECT_EQ(offered("ray:"), "&Plan for verl-megatron");
  EXPECT_EQ(offered("verl-megatron:"), "&Plan for verl-megatron");
  EXPECT_EQ(offered("verl-torchtitan:"), "&Plan for verl-torchtitan") << "who asks for it";
  offered("vllm:");
  EXPECT_TRUE(plan_for->isHidden()) << "it serves the plan's rollout as it is";
}

// Every setting can be asked, from a menu that the palette has, too.
TEST(WhyNot, OfAnySettingIsAMenusAction) {
  MainWindow window;
  window.show();
  window.session().ask({.model = "qwen2.5-0.5b", .cluster = "h100-8", .workload = "ppo-7b-1k"});
  QAction* action = nullptr;
  for (QAction* one : commandsOf(*window.menuBar())) {
    if (nameOf(*one) == "Why not another choice") action = one;
  }
  ASSERT_NE(action, nullptr);
  ASSERT_TRUE(wait_for([&] { return !window.session().isBusy(); }));
  const SharedPlan best = window.session().plan();
  QString impossible, costs;
  with_dialog(&window, [&](QDialog& dialog) {
    auto* says = named<QPlainTextEdit>(dialog, "Why not");
    const auto ask = [&](const QString& setting, const QString& value) {
      named<QComboBox>(dialog, "Setting")->setCurrentText(setting);
      auto* line = named<QComboBox>(dialog, "Value");
      line->setCurrentText(value);
      QTest::keyClick(line->lineEdit(), Qt::Key_Return);
      EXPECT_TRUE(dialog.isVisible()) << "Enter asks";
      EXPECT_TRUE(wait_for([&] { return !says->toPlainText().startsWith("Planning"); }));
      return says->toPlainText();
    };
    impossible = ask("actor.tp", "3");
    costs = ask("actor.recompute", "full");
    dialog.accept();
  });
  action->trigger();
  EXPECT_TRUE(impossible.startsWith("No plan is possible: actor.tp=3 does not divide"))
      << impossible.toStdString();
  EXPECT_TRUE(costs.startsWith("The best plan with actor.recompute=full is "))
      << costs.toStdString();
  EXPECT_TRUE(costs.contains(" longer than this plan: computation +")) << costs.toStdString();
  EXPECT_EQ(window.session().document().question.fixed,
            std::vector<std::string>{"actor.recompute=full"});
}

TEST(PlanTable, RowsAreFilledOnceTheAnswerRests) {
  MainWindow window;
  window.show();
  window.session().ask({.model = "qwen2.5-0.5b", .cluster = "h100-8", .workload = "ppo-7b-1k"});
  const PlanTableModel& rows = *window.session().plans();
  ASSERT_TRUE(wait_for([&] { return window.session().document().valid(); }));
  if (window.session().document().seconds >= 1) GTEST_SKIP() << "so slow that rows are left open";
  ASSERT_TRUE(wait_for([&] {
    for (int row = 0; row < rows.rowCount(); ++row) {
      if (rows.index(row, PlanTableModel::Peak).data().toString().isEmpty()) return false;
    }
    return rows.rowCount() > 1;
  }));
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
