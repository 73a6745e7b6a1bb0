// SPDX-License-Identifier: GPL-3.0-or-later
// What the window tells a run: by keys and buttons, as `tessera signal` does.
#include <gtest/gtest.h>

#include <QDir>
#include <QFileInfo>
#include <QLineEdit>
#include <QMessageBox>
#include <QPushButton>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_yaml.h"
#include "gui/control/run_file.h"
#include "gui/control/run_log.h"
#include "gui/control/run_start.h"
#include "gui/document/text.h"
#include "gui/pages/command_palette.h"
#include "gui/run_views/run_file_dialog.h"
#include "gui/run_views/start_dialog.h"
#include "planner/plan/plan.h"
#include "simulator/timeline/rank_status.h"
#include "simulator/timeline/run_lock.h"
#include "simulator/timeline/run_signal.h"
#include "tests/gui/explore_flow.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

class Control : public Explore {
 protected:
  void SetUp() override {
    Explore::SetUp();
    rank = std::make_unique<RankStatusFile>(run(), 0);
    rank->enter("gen", 3);
    ASSERT_TRUE(window.openRun(folder.path(), false));
  }
  std::filesystem::path run() const { return folder.path().toStdString(); }
  /// By the key, in the window; the run is told in the background.
  void press(Qt::Key key) {
    window.activateWindow();
    ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
    QTest::keyClick(&window, key);
    ASSERT_TRUE(wait_for([&] { return !window.session().run()->isTelling(); }));
    QCoreApplication::processEvents();
  }
  QPushButton* button(const QString& text) {
    for (QPushButton* button : window.findChildren<QPushButton*>()) {
      if (button->text().remove('&') == text) return button;
    }
    return nullptr;
  }
  QString message() {
    return named<MessageBar>(window, "What is wrong with the run's files")->text();
  }
  RunState state() {
    window.session().run()->poll();
    return window.session().run()->summary().state;
  }

  std::unique_ptr<RankStatusFile> rank;
};

// Before anything is filled in: most who look at a plan of many nodes have none of them here.
TEST(StartDialog, SaysAtOnceThatAPlanIsForOtherMachines) {
  Plan plan = free_plan();
  plan.cluster.gpus_per_node = std::max(1, plan.world_size() / 4);
  StartDialog dialog(shared(plan));
  const auto* says = dialog.findChild<QLabel*>("elsewhere");
  ASSERT_NE(says, nullptr);
  EXPECT_TRUE(says->text().contains("needs 4 nodes")) << says->text().toStdString();
  EXPECT_TRUE(says->text().contains("Ctrl+J"));
  plan.cluster.device.name = "cpu";
  EXPECT_EQ(StartDialog(shared(plan)).findChild<QLabel*>("elsewhere"), nullptr);
}

// Enter is for what the dialog is for, not for leaving it.
TEST(RunFileDialog, EnterSaves) {
  const QTemporaryDir folder;
  RunFileDialog dialog(shared(free_plan()));
  dialog.show();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&dialog));
  auto* prompts = named<QLineEdit>(dialog, "File of prompts");
  prompts->setFocus();
  QTest::keyClick(prompts, Qt::Key_Return);
  EXPECT_TRUE(dialog.isVisible()) << "it lacks its prompts";
  const QString there = folder.filePath("prompts.jsonl");
  std::ofstream(there.toStdString()) << "{}\n";
  prompts->setText(there);
  const QString file = folder.filePath("run.yaml");
  answer_file_dialog(&dialog, file);
  QTest::keyClick(prompts, Qt::Key_Return);
  EXPECT_TRUE(QFileInfo::exists(file));
  EXPECT_EQ(dialog.result(), QDialog::Accepted);
}

TEST_F(Control, AKeyPausesAndAnotherLetsItGoOn) {
  EXPECT_FALSE(button("Go on with the run")->isEnabled());
  press(Qt::Key_F7);
  ASSERT_TRUE(pause_requested(run()));
  std::ifstream in(run() / "pause");
  EXPECT_EQ(std::string((std::istreambuf_iterator<char>(in)), {}), "the window");
  EXPECT_FALSE(button("Pause the run")->isEnabled());
  EXPECT_EQ(state(), RunState::running);  // until its ranks have come so far
  rank->enter("paused", 3);
  EXPECT_EQ(state(), RunState::paused);
  EXPECT_TRUE(
      named<MessageBar>(window, "State of the run")->text().contains("paused after step 3"));
  press(Qt::Key_F8);
  EXPECT_FALSE(pause_requested(run()));
  EXPECT_TRUE(button("Pause the run")->isEnabled());
  EXPECT_FALSE(button("Go on with the run")->isEnabled());
}

TEST_F(Control, AClickPausesAsWell) {
  QTest::mouseClick(button("Pause the run"), Qt::LeftButton);
  EXPECT_TRUE(wait_for([&] { return pause_requested(run()); }));
}

TEST_F(Control, StoppingAsksFirst) {
  with_dialog(&window, [](QDialog& dialog) { QTest::keyClick(&dialog, Qt::Key_Return); });
  press(Qt::Key_F9);
  EXPECT_FALSE(stop_requested(run()));
  with_dialog(&window, [](QDialog& dialog) {
    QTest::mouseClick(dynamic_cast<QMessageBox&>(dialog).button(QMessageBox::Yes), Qt::LeftButton);
  });
  press(Qt::Key_F9);
  EXPECT_EQ(requested_stop(run()), StopReason::stop);
  EXPECT_NE(button("Stopping..."), nullptr);
  EXPECT_FALSE(button("Pause the run")->isEnabled());
}

class Resume : public Control {
 protected:
  void SetUp() override {
    Control::SetUp();
    path = qgetenv("PATH");
    qputenv("PATH", path + ":" + TESSERA_BINARY_DIR + "/cli");
  }
  void TearDown() override {
    qputenv("PATH", path);
    std::filesystem::remove(run().string() + ".log");
  }
  /// Its rank has ended with that code, and it left what goes on.
  void end(int code) {
    rank->finish(code);
    write("plan.json", "{}");
    write("run.yaml", "trainer: {}\n");
    std::filesystem::create_directories(run() / "checkpoints" / "global_step_2");
    std::filesystem::create_directories(run() / "checkpoints" / "global_step_10");
    std::filesystem::create_directories(run() / "checkpoints" / ".global_step_12.partial");
    state();
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(run() / name) << text;
  }
  QString why() {
    state();
    return whyNot(*window.run().controls().back());
  }
  void pressResume() {
    window.activateWindow();
    ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
    QTest::keyClick(&window, Qt::Key_F8, Qt::ShiftModifier);
  }

  QByteArray path;
};

TEST_F(Resume, SaysWhatSpeaksAgainstIt) {
  EXPECT_EQ(why(), "the run has not ended");
  request_stop(run());
  rank->finish(130);
  EXPECT_EQ(why(), "its folder has no plan.json");
  write("plan.json", "{}");
  EXPECT_EQ(why(), "its folder has no run.yaml");
  write("run.yaml", "trainer: {}\n");
  EXPECT_EQ(why(), "it has no checkpoint");
  std::filesystem::create_directories(run() / "checkpoints" / ".global_step_12.partial");
  EXPECT_EQ(why(), "it has no checkpoint") << "it was not complete";
  std::filesystem::create_directories(run() / "checkpoints" / "global_step_10");
  EXPECT_EQ(why(), "");
  EXPECT_TRUE(button("Resume the run...")->isEnabled());
  write("lock", "process 17 on another.host\n");
  EXPECT_EQ(why(), "the run was on the host another.host");
  std::filesystem::remove(run() / "lock");
  {
    Problems problems;
    const auto held = RunLock::take(run() / "run.lock", 0, problems);
    ASSERT_TRUE(held.has_value());
    EXPECT_EQ(why(), "the command that started the run has not ended");
  }
  EXPECT_EQ(why(), "") << "its name stays in the file";
  qputenv("PATH", "");
  EXPECT_TRUE(why().contains("program tessera is not here")) << why().toStdString();
  forget_stop(run());
  rank = std::make_unique<RankStatusFile>(run(), 0);
  rank->finish(0);
  EXPECT_EQ(why(), "the run is finished");
  std::filesystem::remove_all(run() / "ranks");
  EXPECT_EQ(why(), "nothing shows that the run has begun");
  window.session().run()->close();
  EXPECT_EQ(whyNot(*window.run().controls().back()), "no run is open");
}

TEST_F(Resume, ShowsTheCommandAndLeavesItAtThat) {
  for (int step = 8; step <= 13; ++step) {
    std::ofstream(run() / "metrics.jsonl", std::ios::app)
        << "{\"step\": " << step << ", \"data\": {\"timing_s/step\": 1}}\n";
  }
  end(70);
  ASSERT_EQ(window.session().run()->summary().state, RunState::failed);
  QString asked;
  with_dialog(&window, [&](QDialog& dialog) {
    asked = dynamic_cast<QMessageBox&>(dialog).text();
    QTest::keyClick(&dialog, Qt::Key_Escape);
  });
  pressResume();
  const QString folder = QFileInfo(this->folder.path()).absoluteFilePath();
  EXPECT_TRUE(asked.contains("after step 10"));
  EXPECT_TRUE(asked.contains("Steps 11 to 13 are done once more")) << asked.toStdString();
  EXPECT_TRUE(asked.contains(QString("tessera run %1/plan.json --config %1/run.yaml --device cuda "
                                     "-o %1 --resume")
                                 .arg(folder)))
      << asked.toStdString();
  rest(300);
  EXPECT_FALSE(std::filesystem::exists(run().string() + ".log"));
}

// Of the run's log what was said before is not why it was refused now.
TEST_F(Resume, TellsWhyTheRunRefuses) {
  end(70);
  std::ofstream(run().string() + ".log") << "tessera: rank 0 failed\n";
  with_dialog(&window, [](QDialog& dialog) { QTest::keyClick(&dialog, Qt::Key_Return); });
  pressResume();
  ASSERT_TRUE(wait_for([&] { return message().contains("did not start"); }))
      << message().toStdString();
  EXPECT_TRUE(message().contains("plan.json")) << message().toStdString();
  EXPECT_FALSE(message().contains("rank 0 failed"));
  EXPECT_TRUE(std::filesystem::exists(run() / "checkpoints" / "global_step_10"));
  EXPECT_TRUE(std::filesystem::exists(run().string() + ".log"));
  EXPECT_EQ(why(), "") << "it can be tried again";
}

TEST_F(Control, WhatNobodyWouldHearIsRefusedAsTheCommandDoes) {
  rank->finish(0);  // the window has not looked since
  std::string wanted;
  try {
    send_signal(run(), RunSignal::pause, "a test");
  } catch (const Error& error) {
    wanted = error.what();
  }
  ASSERT_FALSE(wanted.empty());
  press(Qt::Key_F7);
  EXPECT_FALSE(pause_requested(run()));
  EXPECT_EQ(message().toStdString(), wanted);
  EXPECT_EQ(state(), RunState::finished);
  EXPECT_FALSE(button("Pause the run")->isEnabled());
  EXPECT_FALSE(button("Stop the run")->isEnabled());
}

// The page of the run file is held to the reader's own table (command_pages_test).
TEST(RunFile, OffersTheRulesOfItsPage) {
  std::ifstream page(TESSERA_SOURCE_DIR "/docs/inputs/run.md");
  std::string line;
  while (std::getline(page, line) && !line.starts_with("| `reward.function` |")) {
  }
  QStringList rules;
  for (const QString& part : QString::fromStdString(line).section('|', 2, 2).split(',')) {
    rules << part.trimmed().remove('`');
  }
  rules.removeAll("unit_tests");  // these two run what was answered, and need more keys
  rules.removeAll("sandbox_fusion");
  EXPECT_EQ(rewardRules(), rules);
}

TEST(RunFile, SaysWhatThePlanLeavesOpen) {
  QTemporaryDir folder;
  RunFileRequest request;
  EXPECT_TRUE(whyNoRunFile(request).contains("prompts"));
  request.prompts = folder.filePath("it's here.jsonl");
  EXPECT_TRUE(whyNoRunFile(request).contains("no such file"));
  std::ofstream(request.prompts.toStdString()) << "{}\n";
  EXPECT_EQ(whyNoRunFile(request), "");
  Plan plan;
  plan.roles = {RolePlan{.role = Role::actor}, RolePlan{.role = Role::critic}};
  request.learning_rate = 2e-3;
  request.save_every = 7;
  Problems problems;
  const auto read = parse_yaml(run_file_text(request, plan), "run.yaml", problems);
  ASSERT_TRUE(read && problems.empty()) << problemsText(problems).toStdString();
  const auto at = [&](std::initializer_list<const char*> path) {
    const Node* node = &read->root;
    for (const char* key : path) node = node->find(key);
    return *node;
  };
  EXPECT_EQ(at({"data", "train_files"}).text, request.prompts.toStdString());
  RunFileRequest relative = request;
  relative.prompts = QDir::current().relativeFilePath(request.prompts);
  EXPECT_EQ(whyNoRunFile(relative), "");
  EXPECT_EQ(run_file_text(relative, plan), run_file_text(request, plan));
  EXPECT_EQ(at({"algorithm", "adv_estimator"}).text, "gae");
  EXPECT_EQ(at({"actor_rollout_ref", "actor", "optim", "lr"}).number, 2e-3);
  EXPECT_EQ(at({"critic", "optim", "lr"}).number, 1e-5);
  EXPECT_EQ(at({"reward", "function"}).text, "fraction");
  EXPECT_EQ(at({"trainer", "save_freq"}).integer, 7);
  plan.roles = {RolePlan{.role = Role::actor}, RolePlan{.role = Role::reward}};
  const std::string other = run_file_text(request, plan);
  EXPECT_NE(other.find("grpo"), std::string::npos);
  EXPECT_EQ(other.find("critic"), std::string::npos);
  EXPECT_EQ(other.find("function"), std::string::npos);
}

TEST(RunStart, SaysWhatIsMissingBeforeAnythingIsStarted) {
  QTemporaryDir folder;
  StartRequest request;
  EXPECT_TRUE(whyNoStart(request).contains("no plan"));
  request.plan = std::make_shared<const Plan>();
  EXPECT_TRUE(whyNoStart(request).contains("run file"));
  request.config = "grpo-digit";
  EXPECT_TRUE(whyNoStart(request).contains("grpo-digits")) << whyNoStart(request).toStdString();
  request.config = "grpo-digits";
  request.settings = {"trainer.seed"};
  EXPECT_TRUE(whyNoStart(request).contains("KEY=VALUE"));
  request.settings = {"trainer.seed=1"};
  EXPECT_TRUE(whyNoStart(request).contains("folder for the run is missing"));
  request.folder = folder.path();
  EXPECT_TRUE(whyNoStart(request).contains("exists"));
  request.folder = folder.filePath("none/run");
  EXPECT_TRUE(whyNoStart(request).contains("can be written"));
  std::ofstream(folder.filePath("run.log").toStdString()) << "of another";
  request.folder = folder.filePath("run");
  EXPECT_TRUE(whyNoStart(request).contains("run.log exists"));
  request.folder = folder.filePath("a run");
  const QByteArray path = qgetenv("PATH");
  qputenv("PATH", folder.path().toUtf8());
  EXPECT_TRUE(whyNoStart(request).contains("program tessera is not here"));
  qputenv("PATH", path + ":" + TESSERA_BINARY_DIR + "/cli");
  EXPECT_TRUE(whyNoStart(request).isEmpty()) << whyNoStart(request).toStdString();
  qputenv("PATH", path);
  EXPECT_EQ(commandText(wordsOf(request)),
            QString("tessera run '%1.plan.json' --config grpo-digits --device cuda --set "
                    "trainer.seed=1 -o '%1'")
                .arg(request.folder));
}

// Names as sbatch makes them: its own (slurm-%j.out, of arrays slurm-%A_%a.out), and that of
// exported jobs (#SBATCH --output=%x-%j.log).
TEST(RunLogs, OfASlurmJobAreFoundBesideTheRun) {
  QTemporaryDir folder;
  const std::filesystem::path root = folder.path().toStdString(), run = root / "run";
  std::filesystem::create_directory(run);
  const auto write = [](const std::filesystem::path& file, int minutes_ago) {
    std::ofstream(file) << "of " << file.filename().string() << "\n";
    std::filesystem::last_write_time(
        file, std::filesystem::file_time_type::clock::now() - std::chrono::minutes(minutes_ago));
  };
  write(run / "plan.json", 60);
  write(run / "metrics.jsonl", 1);
  write(root / "slurm-7.out", 300);  // of a job before
  write(root / "slurm-x.out", 1);
  write(root / "notes.log", 1);
  write(root / "job.sbatch", 1);
  EXPECT_TRUE(slurm_log(run).empty());
  EXPECT_EQ(RunLog(run).read(), "");
  write(root / "slurm-8_3.out", 20);
  EXPECT_EQ(slurm_log(run), root / "slurm-8_3.out");
  write(run / "train-9.log", 5);
  EXPECT_EQ(RunLog(run).read(), "of train-9.log");
  write(root / "train-10.log", 2);
  RunLog log(run / "");
  EXPECT_EQ(log.read(), "of train-10.log");
  EXPECT_EQ(log.file().filename(), "train-10.log");
  write(root / "run.log", 0);  // its own goes before
  EXPECT_EQ(log.read(), "of run.log");
}

}  // namespace
}  // namespace tessera::gui
