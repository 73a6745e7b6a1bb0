// SPDX-License-Identifier: GPL-3.0-or-later
// Nothing that was made in the window goes with it unasked.
#include <gtest/gtest.h>

#include <QFile>
#include <QFileInfo>
#include <QMessageBox>

#include "gui/document/project.h"
#include "gui/kept/workspace.h"
#include "tests/gui/explore_flow.h"

namespace tessera::gui {
namespace {

class Closing : public Explore {
 protected:
  /// Another question than small_query(), as an edit of it.
  static PlanQuery edited() {
    PlanQuery query = small_query();
    query.fixed = {"actor.tp=2"};
    return query;
  }
  /// Ctrl+Q, where the question whether to save is answered so; says whether it was asked.
  bool quit(QMessageBox::StandardButton answer, const QString& file = {}) {
    asked.clear();
    auto* once = new QObject(&window);
    with_dialog(once, [this, once, answer, file](QDialog& dialog) {
      auto* box = qobject_cast<QMessageBox*>(&dialog);
      if (box == nullptr) return dialog.reject();
      asked = box->text();
      if (!file.isEmpty()) answer_file_dialog(once, file);
      box->button(answer)->click();
    });
    window.activateWindow();
    EXPECT_TRUE(QTest::qWaitForWindowActive(&window));
    QTest::keyClick(&window, Qt::Key_Q, Qt::ControlModifier);
    delete once;
    return !asked.isEmpty();
  }
  void openAgain() {
    window.show();
    ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
  }

  QString asked;
};

TEST_F(Closing, WhatOnlyBeganIsNotAskedFor) {
  ask(small_query());
  EXPECT_FALSE(quit(QMessageBox::Cancel)) << asked.toStdString();
  EXPECT_FALSE(window.isVisible());
}

TEST_F(Closing, APlanInNoFileIsAskedFor) {
  ask(small_query());
  ask(edited());
  ASSERT_TRUE(document().valid());
  EXPECT_TRUE(quit(QMessageBox::Cancel));
  EXPECT_EQ(asked, "The plan that is shown is in no file.");
  EXPECT_TRUE(window.isVisible());
  const QString file = folder.filePath("kept.json");
  EXPECT_TRUE(quit(QMessageBox::Save, file));
  EXPECT_FALSE(window.isVisible());
  EXPECT_TRUE(QFileInfo::exists(file));
  openAgain();
  EXPECT_FALSE(quit(QMessageBox::Cancel)) << asked.toStdString();  // it is in its file
  openAgain();
  ask(small_query());
  EXPECT_TRUE(quit(QMessageBox::Discard));
  EXPECT_FALSE(window.isVisible());
}

// A file dialog that is left and a file that cannot be written save nothing.
TEST_F(Closing, WhatWasNotSavedKeepsTheWindowOpen) {
  ask(small_query());
  ask(edited());
  EXPECT_TRUE(quit(QMessageBox::Save, "/proc/plan.json"));
  EXPECT_TRUE(window.isVisible());
}

TEST_F(Closing, AQuestionWithoutAnAnswerIsKeptInAProject) {
  ask(small_query());
  PlanQuery wrong = small_query();
  wrong.fixed = {"actor.tp=none"};
  ask(wrong);
  ASSERT_FALSE(document().valid());
  const QString file = folder.filePath("study.json");
  EXPECT_TRUE(quit(QMessageBox::Save, file));
  EXPECT_FALSE(window.isVisible());
  Problems problems;
  const auto project = read_project(file.toStdString(), problems);
  ASSERT_TRUE(project.has_value());
  EXPECT_EQ(project->question, wrong);
}

TEST_F(Closing, AProjectThatLacksSomethingIsAskedFor) {
  ask(small_query());
  const QString file = folder.filePath("study.json");
  ASSERT_TRUE(window.saveProject(file));
  ask(edited());
  EXPECT_TRUE(quit(QMessageBox::Save));  // its file is known
  EXPECT_TRUE(asked.startsWith("study.json ")) << asked.toStdString();
  EXPECT_FALSE(window.isVisible());
  Problems problems;
  EXPECT_EQ(read_project(file.toStdString(), problems)->question, edited());
  openAgain();
  EXPECT_FALSE(quit(QMessageBox::Cancel)) << asked.toStdString();
}

TEST_F(Closing, PinnedPlansAreAskedFor) {
  ask(small_query());
  window.session().pin();
  EXPECT_TRUE(quit(QMessageBox::Cancel));
  EXPECT_TRUE(asked.startsWith("The question and the pinned plans")) << asked.toStdString();
  ASSERT_TRUE(window.session().savePlan(folder.filePath("plan.json")));
  EXPECT_TRUE(quit(QMessageBox::Cancel));
  EXPECT_TRUE(asked.startsWith("The pinned plans are in no file")) << asked.toStdString();
}

// Undo brings the question back, and no pinned plans.
TEST_F(Closing, AnotherProjectAsksForPinnedPlansInNoFile) {
  const QString file = folder.filePath("study.json"), broken = folder.filePath("broken.json");
  write_project({.question = edited(), .pinned = {}, .runs = {}}, file.toStdString());
  write_project({}, broken.toStdString());
  QFile(broken).resize(3);
  ask(small_query());
  window.session().pin();
  const auto open = [&](const QString& path, QMessageBox::StandardButton answer) {
    asked.clear();
    auto* once = new QObject(&window);
    with_dialog(once, [this, answer](QDialog& dialog) {
      auto* box = qobject_cast<QMessageBox*>(&dialog);
      if (box == nullptr) return dialog.reject();
      asked = box->text();
      box->button(answer)->click();
    });
    const bool opened = window.changeProject(path);
    delete once;
    return opened;
  };
  EXPECT_FALSE(open(broken, QMessageBox::Discard));
  EXPECT_TRUE(asked.isEmpty());  // nothing would have gone
  EXPECT_FALSE(open(file, QMessageBox::Cancel));
  EXPECT_TRUE(asked.contains("pinned")) << asked.toStdString();
  EXPECT_EQ(window.session().pinned()->count(), 1);
  EXPECT_TRUE(open(file, QMessageBox::Discard));
  EXPECT_EQ(window.session().pinned()->count(), 0);
  EXPECT_TRUE(open(file, QMessageBox::Cancel));  // nothing is in no file
  EXPECT_TRUE(asked.isEmpty());
  // What is saved before the same file is opened again is what is opened.
  ASSERT_TRUE(wait_for([&] { return document().valid(); }));
  window.session().pin();
  EXPECT_TRUE(open(file, QMessageBox::Save));
  EXPECT_EQ(window.session().pinned()->count(), 1);
}

// After a crash, or where it is not saved, the next start asks the last question as ever.
TEST_F(Closing, TheLastQuestionIsRememberedWhateverIsAnswered) {
  const std::filesystem::path memory = folder.filePath("window.json").toStdString();
  MainWindow other(memory);
  other.show();
  other.session().ask(small_query());
  other.session().ask(edited());
  for (const auto answer : {QMessageBox::Cancel, QMessageBox::Discard}) {
    with_dialog(&other, [answer](QDialog& dialog) {
      if (auto* box = qobject_cast<QMessageBox*>(&dialog)) box->button(answer)->click();
    });
    EXPECT_EQ(other.close(), answer == QMessageBox::Discard);
    Problems problems;
    EXPECT_EQ(read_workspace(memory, problems).question, edited());
  }
}

// What was given for one start is not remembered; what was chosen here is.
TEST_F(Closing, ColoursAreRememberedOnceTheyAreChosen) {
  const std::filesystem::path memory = folder.filePath("window.json").toStdString();
  MainWindow other(memory);
  other.show();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&other));
  other.session().ask(small_query());
  other.setTheme(Theme::dark);
  other.close();
  Problems problems;
  EXPECT_FALSE(read_workspace(memory, problems).dark);
  other.setTheme(Theme::light);
  other.show();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&other));
  QTest::keyClick(&other, Qt::Key_T, Qt::ControlModifier);
  other.close();
  EXPECT_TRUE(read_workspace(memory, problems).dark);
  other.setTheme(Theme::light);
}

}  // namespace
}  // namespace tessera::gui
