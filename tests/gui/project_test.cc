// SPDX-License-Identifier: GPL-3.0-or-later
// Projects: question, pinned plans and runs in one file that a stranger may have written.
#include "gui/document/project.h"

#include <gtest/gtest.h>

#include <QFile>
#include <QFileInfo>
#include <QLabel>
#include <QMenuBar>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "gui/document/text.h"
#include "planner/plan/plan_json.h"
#include "tests/gui/explore_flow.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

namespace fs = std::filesystem;

const QString kData = QString(TESSERA_SOURCE_DIR) + "/tests/gui/data";

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

Project sample(const fs::path& folder) {
  Project project;
  project.question = small_query();
  project.question->fixed = {"actor.tp=2", "placement=actor+reference | critic"};
  project.question->risk = 0.001;
  project.question->price_per_gpu_hour = 2.5;
  project.question->topology = "/nodes/topo.txt";
  project.question->batch = {.prompt_tokens = 512, .algorithm = "grpo"};
  project.question->opened = std::make_shared<const Plan>(digits_plan());
  project.pinned = {shared(free_plan()), shared(digits_plan())};
  project.runs = {folder / "runs/first", "/elsewhere/second", RemoteName{7070, "third"}};
  return project;
}

TEST(Project, IsReadAsItWasWrittenAndMovesWithItsRuns) {
  QTemporaryDir folder;
  const fs::path here = folder.path().toStdString();
  const Project project = sample(here / "study");
  fs::create_directories(here / "study/runs/first");
  write_project(project, here / "study/project.json");
  Problems problems;
  auto read = read_project(here / "study/project.json", problems);
  ASSERT_TRUE(read) << problemsText(problems).toStdString();
  EXPECT_EQ(*read, project);
  // The same bytes again.
  write_project(*read, here / "study/again.json");
  EXPECT_EQ(text_of(here / "study/again.json"), text_of(here / "study/project.json"));
  fs::rename(here / "study", here / "moved");
  read = read_project(here / "moved/project.json", problems);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->runs, (std::vector<RunPlace>{here / "moved/runs/first", "/elsewhere/second",
                                               RemoteName{7070, "third"}}));
  write_project({}, here / "empty.json");
  read = read_project(here / "empty.json", problems);
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, Project{});
}

/// What is said of a project with this text.
std::string refusal(const fs::path& file, const std::string& text) {
  std::ofstream(file) << text;
  Problems problems;
  EXPECT_FALSE(read_project(file, problems)) << text;
  return problemsText(problems).toStdString();
}

TEST(Project, WhatIsWrongIsToldWithItsPlace) {
  QTemporaryDir folder;
  const fs::path file = folder.filePath("project.json").toStdString();
  const auto says = [&](const std::string& text, const std::string& part) {
    const std::string said = refusal(file, text);
    EXPECT_NE(said.find(part), std::string::npos) << said;
    EXPECT_NE(said.find("project.json"), std::string::npos) << said;
  };
  says("", "1:1");
  says("[]", "a list");
  says("{}", "tessera_project");
  says("{\"tessera_project\": 2}", "1:21 (/tessera_project)");
  says(to_json(digits_plan()), "tessera_project");
  says("{\"tessera_project\": 1,\n \"command\": \"touch here\"}", "2:13 (/command)");
  says("{\"tessera_project\": 1, \"question\": {\"model\": \"m\"}}", "/question");
  for (const char* risk : {"0", "9e-07", "0.51", "2"}) {  // as the command line has it
    says("{\"tessera_project\": 1, \"question\": {\"risk\": " + std::string(risk) + "}}",
         "(/question/risk): found " + std::string(risk) +
             ", expected a number from 0.000001 to 0.5");
  }
  says("{\"tessera_project\": 1, \"runs\": [3]}", "(/runs): found 3, expected a string");
  says("{\"tessera_project\": 1, \"runs\": [\"\"]}", "/runs");
  says("{\"tessera_project\": 1, \"runs\": [\"remote:10.0.0.1:80/RUN\"]}",
       "expected remote:127.0.0.1:PORT/RUN");
  says("{\"tessera_project\": 1, \"runs\": [\"remote:127.0.0.1:80/../x\"]}",
       "expected remote:127.0.0.1:PORT/RUN");
  says("{\"tessera_project\": 1, \"pinned\": 3}", "/pinned");
  says("{\"tessera_project\": 1, \"pinned\": [{}]}", "this is not a plan");
  // Of a plan in it, the line of the project.
  Project project;
  project.pinned = {shared(digits_plan())};
  write_project(project, file);
  std::string text = text_of(file);
  const std::size_t at = text.find("\"tp\": 2");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 7, "\"tp\": 3");
  const auto line =
      1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  const std::string said = refusal(file, text);
  EXPECT_NE(said.find("/roles/0"), std::string::npos) << said;
  const std::size_t told = std::stoul(said.substr(said.find(".json:") + 6));
  EXPECT_LE(told, static_cast<std::size_t>(line)) << said;
  EXPECT_GE(told + 40, static_cast<std::size_t>(line)) << said;
}

TEST(Project, ABrokenOneIsNeverFatal) {
  QTemporaryDir folder;
  const fs::path file = folder.filePath("project.json").toStdString();
  write_project(sample(folder.path().toStdString()), file);
  const std::string good = text_of(file);
  MainWindow window;
  window.show();
  window.session().ask(small_query());
  int refused = 0;
  for (std::size_t i = 0; i < 100; ++i) {
    std::string text = good;
    const std::size_t at = i * good.size() / 100;
    switch (i % 4) {
      case 0:
        text.resize(at);
        break;
      case 1:
        text[at] = static_cast<char>(0xff);
        break;
      case 2:
        text.insert(at, std::string(70, '['));
        break;
      default:
        text.erase(at, 1 + i);
        break;
    }
    std::ofstream(file, std::ios::binary) << text;
    const Project before = window.session().project();
    if (window.openProject(QString::fromStdString(file.string()), false)) continue;
    ++refused;
    EXPECT_TRUE(window.session().document().file_problems.contains("project.json")) << i;
    EXPECT_TRUE(window.session().project() == before) << i;
  }
  EXPECT_GE(refused, 90);
}

TEST_F(Explore, AProjectIsSavedAndOpenedByKeys) {
  ask(small_query());
  QTest::keyClick(&window, Qt::Key_D, Qt::ControlModifier);
  ASSERT_TRUE(window.openRun(kData + "/run", false));
  const Qt::KeyboardModifiers keys = Qt::ControlModifier | Qt::AltModifier;
  const QString file = folder.filePath("study.json");
  answer_file_dialog(&window, file);
  QTest::keyClick(&window, Qt::Key_S, keys);
  ASSERT_TRUE(QFileInfo::exists(file)) << document().file_problems.toStdString();
  EXPECT_TRUE(window.windowTitle().endsWith(" - study.json - Tessera"))
      << window.windowTitle().toStdString();
  // What is pinned beside it is not in the file, until the same keys save it without asking.
  window.session().pinned()->setPlans({document().plan, shared(digits_plan())});
  EXPECT_TRUE(window.windowTitle().endsWith(" - study.json* - Tessera"))
      << window.windowTitle().toStdString();
  window.activateWindow();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
  QTest::keyClick(&window, Qt::Key_S, keys);
  EXPECT_TRUE(window.windowTitle().endsWith(" - study.json - Tessera"));

  const fs::path memory = folder.filePath("window.json").toStdString();
  {
    MainWindow other(memory);
    other.show();
    ASSERT_TRUE(QTest::qWaitForWindowActive(&other));
    answer_file_dialog(&other, file);
    QTest::keyClick(&other, Qt::Key_O, keys);
    EXPECT_EQ(other.session().document().question, small_query());
    EXPECT_EQ(other.session().pinned()->count(), 2);
    EXPECT_EQ(other.session().run()->folder(), (kData + "/run").toStdString());
    ASSERT_TRUE(wait_for([&] { return other.session().document().valid(); }));
    EXPECT_EQ(*other.session().project().question, *window.session().project().question);
    EXPECT_TRUE(other.windowTitle().endsWith(" - study.json - Tessera"));
    other.close();
  }
  MainWindow later(memory);
  EXPECT_EQ(later.workspace().recent_projects, QStringList{file});
}

// What was followed before is none of its runs: the title would have a star at once.
TEST_F(Explore, AProjectWithoutRunsFollowsNone) {
  ask(small_query());
  const QString file = folder.filePath("study.json");
  ASSERT_TRUE(window.saveProject(file));
  ASSERT_TRUE(window.openRun(kData + "/run", false));
  EXPECT_FALSE(window.session().run()->steps()->steps().empty());
  ASSERT_TRUE(window.openProject(file));
  EXPECT_TRUE(window.session().run()->folder().empty());
  EXPECT_TRUE(window.session().run()->steps()->steps().empty());
  ASSERT_TRUE(wait_for([&] { return !window.session().isBusy(); }));
  EXPECT_TRUE(window.windowTitle().endsWith(" - study.json - Tessera"))
      << window.windowTitle().toStdString();
  window.showPage(&window.run());
  EXPECT_EQ(named<QLabel>(window, "State of the run")->text(), "");
  QStringList shown;
  for (QLabel* label : window.run().findChildren<QLabel*>()) {
    if (label->isVisible()) shown << label->text();
  }
  EXPECT_EQ(shown.count("No run is open"), 2) << shown.join("\n").toStdString();
}

TEST_F(Explore, AProjectThatCannotBeWrittenIsToldAndTheOldOneStays) {
  ask(small_query());
  const QString file = folder.filePath("study.json");
  ASSERT_TRUE(window.saveProject(file));
  const std::string before = text_of(file.toStdString());
  EXPECT_FALSE(window.saveProject(folder.path()));
  EXPECT_TRUE(document().file_problems.contains(folder.path()));
  EXPECT_EQ(text_of(file.toStdString()), before);
  EXPECT_TRUE(window.windowTitle().endsWith(" - study.json - Tessera"));
}

TEST_F(Explore, NothingInAProjectIsRunAndRunsThatAreNotThereAreTold) {
  const QString mark = folder.filePath("was_run");
  const std::string command = "touch '" + mark.toStdString() + "'";
  Project project;
  project.question = {.model = "$(" + command + ")",
                      .cluster = "; " + command,
                      .workload = "|" + command,
                      .fixed = {"actor.tp=`" + command + "`"},
                      .engine = command};
  fs::create_directories(folder.filePath("run").toStdString());
  std::ofstream(folder.filePath("run/run.sh").toStdString()) << "#!/bin/sh\n" << command << "\n";
  fs::permissions(folder.filePath("run/run.sh").toStdString(), fs::perms::owner_all);
  project.runs = {folder.filePath("run").toStdString(), folder.filePath("gone").toStdString(),
                  "/dev/zero"};
  const QString file = folder.filePath("study.json");
  write_project(project, file.toStdString());
  ASSERT_TRUE(window.openProject(file));
  EXPECT_TRUE(document().file_problems.contains("gone: no such folder"))
      << document().file_problems.toStdString();
  EXPECT_TRUE(document().file_problems.contains("/dev/zero: no such folder"));
  ASSERT_TRUE(wait_for([&] { return !window.session().isBusy(); }));
  EXPECT_FALSE(document().problems.empty());
  rest(300);
  EXPECT_FALSE(QFileInfo::exists(mark));
}

// A folder that is not mounted just now: who saves the project keeps it, and its place.
TEST_F(Explore, ARunThatIsNotHereJustNowStaysInTheProject) {
  const fs::path here = folder.path().toStdString();
  fs::create_directories(here / "second");
  Project project;
  project.question = small_query();
  project.runs = {here / "away", here / "second", RemoteName{7070, "third"}};
  const QString file = folder.filePath("study.json");
  write_project(project, file.toStdString());
  ASSERT_TRUE(window.openProject(file, false));
  EXPECT_TRUE(document().file_problems.contains("away: no such folder"));
  EXPECT_EQ(window.session().run()->folder(), here / "second") << "it stands in for the first";
  EXPECT_FALSE(window.isWindowModified());
  EXPECT_TRUE(window.session().project() == project);
  ASSERT_TRUE(window.saveProject(file));
  Problems problems;
  EXPECT_EQ(read_project(file.toStdString(), problems)->runs, project.runs);
  // The one that is followed now is the first; who wants one run has no other.
  ASSERT_TRUE(window.openRun(kData + "/run", false));
  EXPECT_EQ(window.session().project().runs.front(), RunPlace((kData + "/run").toStdString()));
  EXPECT_EQ(window.session().project().runs.size(), 3U);
  QTest::keyClick(&window, Qt::Key_O, Qt::ControlModifier | Qt::ShiftModifier);
  EXPECT_EQ(window.session().project().runs.size(), 1U);
}

// The others of a project are opened whichever of its runs is gone, and it is not changed by that.
TEST_F(Explore, AProjectWhoseFirstRunIsGoneOpensItsOthers) {
  const fs::path here = folder.path().toStdString();
  for (const char* name : {"second", "third"}) {
    fs::create_directories(here / name);
    fs::copy(fs::path((kData + "/run/metrics.jsonl").toStdString()), here / name / "metrics.jsonl");
  }
  Project project;
  project.question = small_query();
  project.runs = {here / "gone", here / "second", here / "third"};
  const QString file = folder.filePath("study.json");
  write_project(project, file.toStdString());
  ASSERT_TRUE(window.openProject(file, false));
  EXPECT_TRUE(document().file_problems.contains("gone: no such folder"));
  EXPECT_EQ(window.session().run()->folder(), here / "second");
  ASSERT_EQ(window.session().run()->others().size(), 1U);
  EXPECT_FALSE(window.isWindowModified());
  EXPECT_EQ(window.session().project().runs, project.runs);
}

// The form would show what nobody asked, and an edit of it would go nowhere.
TEST_F(Explore, AfterAStartThatFailedTheFormShowsAQuestion) {
  ASSERT_FALSE(window.openPlan(folder.filePath("none.json")));
  const QString told = document().file_problems;
  EXPECT_TRUE(told.contains("none.json"));
  window.askLast(small_query());
  EXPECT_EQ(document().file_problems, told);
  EXPECT_EQ(document().question, small_query());
  ASSERT_TRUE(wait_for([&] { return !window.session().isBusy(); }));
  EXPECT_TRUE(document().valid());
  EXPECT_EQ(document().file_problems, told) << "until something else is opened";
}

}  // namespace
}  // namespace tessera::gui
