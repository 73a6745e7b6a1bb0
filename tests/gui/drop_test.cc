// SPDX-License-Identifier: GPL-3.0-or-later
// Files that are dropped onto the window are opened by what they are.
#include <gtest/gtest.h>

#include <QFile>
#include <QMimeData>
#include <QWindow>
#include <filesystem>
#include <fstream>

#include "gui/document/file_kind.h"
#include "gui/document/text.h"
#include "planner/plan/plan_json.h"
#include "tests/gui/explore_flow.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

const QString kSampleRun = QString(TESSERA_SOURCE_DIR) + "/tests/gui/data/run";
const QString kConfigs = QString(TESSERA_SOURCE_DIR) + "/configs";

struct Drop : Explore {
  QString write(const QString& name, const std::string& text) {
    const QString file = folder.filePath(name);
    std::ofstream(file.toStdString()) << text;
    return file;
  }
  /// As a desktop does it: events of the whole window, at a place in it. False: not taken.
  bool drop(const QStringList& files, const QPoint& at) {
    QMimeData data;
    QList<QUrl> urls;
    for (const QString& file : files) urls << QUrl::fromLocalFile(file);
    data.setUrls(urls);
    return drop(data, at);
  }
  bool drop(const QMimeData& data, const QPoint& at) {
    QWindow* whole = window.windowHandle();
    QDragEnterEvent enter(at, Qt::CopyAction | Qt::MoveAction, &data, Qt::LeftButton, {});
    QCoreApplication::sendEvent(whole, &enter);
    if (!enter.isAccepted()) return false;
    QDropEvent drop(at, Qt::CopyAction | Qt::MoveAction, &data, Qt::LeftButton, {});
    QCoreApplication::sendEvent(whole, &drop);
    EXPECT_EQ(drop.dropAction(), Qt::CopyAction);  // nothing is moved away
    return drop.isAccepted();
  }
  QPoint on(QWidget* widget) { return widget->mapTo(&window, widget->rect().center()); }
  QPoint middle() { return window.rect().center(); }
  template <class Condition>
  bool soon(const Condition& condition) {
    return wait_for([&] { return condition() && !document().planning; });
  }
};

TEST_F(Drop, APlanIsOpenedWhereverItIsDropped) {
  const QString file = folder.filePath("some.json");
  write_plan(digits_plan(), file.toStdString());
  ask(small_query());
  // On a field that takes text, too: its text is not the file's name then.
  auto* field = named<QComboBox>(window, "actor.tp");
  ASSERT_TRUE(drop({file}, on(field)));
  ASSERT_TRUE(soon([&] { return document().file == file; }));
  EXPECT_EQ(*document().plan, digits_plan());
  EXPECT_EQ(field->currentText(), "2") << "what the plan's search was given";
  QTest::keyClick(&window, Qt::Key_Z, Qt::ControlModifier);  // as any opening
  EXPECT_EQ(document().question, small_query());
  ASSERT_TRUE(soon([&] { return document().valid(); }));
}

TEST_F(Drop, AModelAClusterAndAWorkloadBecomeTheQuestion) {
  ask(small_query());
  const QString model = kConfigs + "/models/qwen2.5-1.5b";
  ASSERT_TRUE(drop({model}, middle()));
  ASSERT_TRUE(soon([&] { return document().question.model == model.toStdString(); }));
  EXPECT_TRUE(document().valid());
  const QString cluster = kConfigs + "/clusters/h200-8.yaml";
  const QString workload = kConfigs + "/workloads/grpo-7b-1k.yaml";
  ASSERT_TRUE(drop({cluster, workload, model + "/config.json"}, middle()));
  ASSERT_TRUE(soon([&] { return document().question.workload == workload.toStdString(); }));
  EXPECT_EQ(document().question.cluster, cluster.toStdString());
  EXPECT_EQ(document().question.model, (model + "/config.json").toStdString());
  EXPECT_TRUE(document().valid());
}

TEST_F(Drop, ARunIsFollowedAndOthersAreDrawnBesideIt) {
  const QString other = folder.filePath("other");
  std::filesystem::create_directories(other.toStdString());
  QFile::copy(kSampleRun + "/metrics.jsonl", other + "/metrics.jsonl");
  ASSERT_TRUE(drop({kSampleRun, other}, middle()));
  RunFollower& run = *window.session().run();
  ASSERT_TRUE(soon([&] { return run.others().size() == 1; }));
  EXPECT_EQ(run.folder(), kSampleRun.toStdString());
  EXPECT_EQ(run.others().front().folder, other.toStdString());
  EXPECT_TRUE(window.run().isVisible());
}

// As the quickstart's is: its plan lies beside the folder of its run.
TEST_F(Drop, TheRunInAFolderWithItsPlanIsFollowed) {
  const std::filesystem::path made = folder.filePath("made").toStdString();
  std::filesystem::create_directories(made / "model");
  for (const char* name : {"run-full", "run"}) {
    std::filesystem::create_directories(made / name);
    std::filesystem::copy_file(kSampleRun.toStdString() + "/metrics.jsonl",
                               made / name / "metrics.jsonl");
  }
  std::filesystem::copy_file(kSampleRun.toStdString() + "/plan.json", made / "plan.json");
  std::filesystem::last_write_time(
      made / "run-full", std::filesystem::last_write_time(made / "run") - std::chrono::hours(1));
  ASSERT_TRUE(drop({QString::fromStdString(made.string())}, middle()));
  EXPECT_TRUE(soon([&] { return window.session().run()->folder() == made / "run"; }));
  EXPECT_EQ(run_of(made / "run"), made / "run");
  EXPECT_EQ(run_of(made / "model"), made / "model");
}

TEST_F(Drop, AProjectIsOpened) {
  Project project;
  project.question = small_query();
  project.pinned = {shared(digits_plan())};
  const QString file = folder.filePath("study.json");
  write_project(project, file.toStdString());
  ASSERT_TRUE(drop({file}, middle()));
  ASSERT_TRUE(soon([&] { return document().valid(); }));
  EXPECT_EQ(window.session().pinned()->count(), 1);
  EXPECT_TRUE(window.windowTitle().contains("study.json")) << window.windowTitle().toStdString();
}

TEST_F(Drop, ATraceIsOpened) {
  const QString file = write("trace.json", R"([{"ph": "X", "ts": 5, "dur": 2}])");
  ASSERT_TRUE(drop({file}, middle()));
  ASSERT_TRUE(soon([&] { return window.session().trace()->facts() != nullptr; }));
  EXPECT_TRUE(window.understand().isVisible());
}

TEST_F(Drop, WhatIsNoneOfThemIsToldAndChangesNothing) {
  ask(small_query());
  std::filesystem::create_directories(folder.filePath("empty").toStdString());
  const std::vector<std::pair<QString, const char*>> wrong{
      {write("l.json", "[1, 2]"), "/0: found no event"},
      {write("a.json", "{\"a\": 1}"),
       "expected a plan, a project, a trace or a model's config.json"},
      {write("b.json", "{\"a\": "), "b.json"},
      {write("c.yaml", "a: 1\n"), "expected a cluster (gpus_per_node) or a workload"},
      {write("d.sh", "#!/bin/sh\ntouch " + folder.filePath("ran").toStdString() + "\n"), "d.sh"},
      {folder.filePath("empty"), "found a folder without any of these"},
      {folder.filePath("none.json"), "none.json"}};
  for (const auto& [file, says] : wrong) {
    window.session().report({});
    QFile(file).setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    ASSERT_TRUE(drop({file}, middle()));
    ASSERT_TRUE(soon([&] { return !document().file_problems.isEmpty(); })) << file.toStdString();
    EXPECT_TRUE(document().file_problems.contains(says)) << document().file_problems.toStdString();
    EXPECT_EQ(document().question, small_query());
    EXPECT_TRUE(document().valid());
  }
  EXPECT_FALSE(QFile::exists(folder.filePath("ran")));
}

TEST_F(Drop, TextAndPagesOfTheNetAreNotTaken) {
  QMimeData text, page;
  text.setText("plan.json");
  page.setUrls({QUrl("https://example.org/plan.json")});
  EXPECT_FALSE(drop(text, middle()));
  EXPECT_FALSE(drop(page, middle()));
}

}  // namespace
}  // namespace tessera::gui
