// SPDX-License-Identifier: GPL-3.0-or-later
// Where plans are saved, and that the title never names a file that holds another plan.
#include <gtest/gtest.h>

#include <QFileDialog>
#include <QFileInfo>
#include <QSpinBox>

#include "planner/plan/plan.h"
#include "tests/gui/explore_flow.h"

namespace tessera::gui {
namespace {

class Saving : public Explore {
 protected:
  static PlanQuery edited() {
    PlanQuery query = small_query();
    query.fixed = {"actor.tp=2"};
    return query;
  }
  void saveAs(const QString& file) {
    answer_file_dialog(&window, file);
    press(Qt::Key_S, Qt::ControlModifier | Qt::ShiftModifier);
  }
  void redo() {  // its keys differ between desktops
    window.session().redo();
    ASSERT_TRUE(wait_for([&] { return !window.session().isBusy(); }));
  }
  void press(Qt::Key key, Qt::KeyboardModifiers modifiers = Qt::ControlModifier) {
    window.activateWindow();
    ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
    QTest::keyClick(&window, key, modifiers);
    ASSERT_TRUE(wait_for([&] { return !window.session().isBusy(); }));
  }
};

TEST_F(Saving, UndoComesBackToTheFile) {
  ask(small_query());
  const QString file = folder.filePath("a.json");
  saveAs(file);
  const SharedPlan saved = document().plan;
  ask(edited());
  EXPECT_TRUE(window.windowTitle().startsWith("unsaved plan*"));
  press(Qt::Key_Z);
  EXPECT_EQ(window.windowTitle(), "a.json - Tessera");
  EXPECT_EQ(document().plan, saved);
  EXPECT_EQ(document().question, small_query());
  EXPECT_FALSE(document().dirty());
  redo();
  EXPECT_EQ(document().question, edited());
  EXPECT_TRUE(document().dirty());
}

TEST_F(Saving, AFileThatHoldsALaterPlanIsNotThatOfAnEarlierOne) {
  ask(small_query());
  const QString file = folder.filePath("a.json");
  ASSERT_TRUE(window.session().savePlan(file));
  ask(edited());
  ASSERT_TRUE(window.session().savePlan(file));
  press(Qt::Key_Z);
  EXPECT_EQ(document().question, small_query());
  EXPECT_TRUE(document().dirty());
  EXPECT_TRUE(window.windowTitle().startsWith("unsaved plan*"))
      << window.windowTitle().toStdString();
  redo();
  EXPECT_EQ(window.windowTitle(), "a.json - Tessera");
  // The same of a plan that was opened.
  ASSERT_TRUE(window.openPlan(file));
  ask(small_query());
  ASSERT_TRUE(window.session().savePlan(file));
  press(Qt::Key_Z);
  EXPECT_TRUE(document().dirty());
}

// Who comes back to it would take what somebody else wrote since for it, and write over that.
TEST_F(Saving, AFileThatAnotherProgramWroteIsNotThatOfThePlanAnyMore) {
  ask(small_query());
  const QString file = folder.filePath("a.json");
  ASSERT_TRUE(window.session().savePlan(file));
  ask(edited());
  QFile other(file);
  ASSERT_TRUE(other.open(QIODevice::WriteOnly));
  other.write("{}");
  other.close();
  press(Qt::Key_Z);
  EXPECT_EQ(document().question, small_query());
  EXPECT_TRUE(document().dirty());
  EXPECT_TRUE(window.windowTitle().startsWith("unsaved plan*"))
      << window.windowTitle().toStdString();
}

// The plan of another row is not what the question is answered with.
TEST_F(Saving, AnotherRowThatWasSavedIsNotTheAnswer) {
  ask(small_query());
  ASSERT_GT(window.session().plans()->rowCount(), 1);
  const Plan first = *document().plan;
  window.session().selectRow(1);
  ASSERT_TRUE(wait_for([&] { return window.session().shownRow() == 1; }));
  ASSERT_TRUE(window.session().savePlan(folder.filePath("second.json")));
  ask(edited());
  press(Qt::Key_Z);
  EXPECT_EQ(document().plan->prediction.step_s, first.prediction.step_s);
  EXPECT_TRUE(document().dirty());
}

// Looking at another row is no change of the file's own.
TEST_F(Saving, WhoComesBackToTheRowThatWasSavedHasNothingToSave) {
  ask(small_query());
  ASSERT_GT(window.session().plans()->rowCount(), 1);
  ASSERT_TRUE(window.session().savePlan(folder.filePath("a.json")));
  window.session().selectRow(1);
  ASSERT_TRUE(wait_for([&] { return window.session().shownRow() == 1; }));
  EXPECT_EQ(window.windowTitle(), "a.json* - Tessera");
  EXPECT_TRUE(window.session().hasEdits());
  window.session().selectRow(0);
  EXPECT_EQ(window.windowTitle(), "a.json - Tessera");
  EXPECT_FALSE(window.session().hasEdits());
  QTest::keyClick(&window, Qt::Key_F5);  // the same question has a plan of its own
  ASSERT_TRUE(wait_for([&] { return !window.session().isBusy(); }));
  EXPECT_EQ(window.windowTitle(), "a.json* - Tessera");
}

TEST_F(Saving, ANameWithoutASuffixGetsOneAndTheNextDialogBeginsThere) {
  ask(small_query());
  saveAs(folder.filePath("study"));
  EXPECT_TRUE(QFileInfo::exists(folder.filePath("study.json")));
  EXPECT_FALSE(QFileInfo::exists(folder.filePath("study")));
  ask(edited());
  QString name, where;
  with_dialog(&window, [&](QDialog& dialog) {
    name = dialog.findChild<QLineEdit*>("fileNameEdit")->text();
    where = dynamic_cast<QFileDialog&>(dialog).directory().absolutePath();
    dialog.reject();
  });
  press(Qt::Key_S);
  EXPECT_EQ(name, "study.json");
  EXPECT_EQ(where, QFileInfo(folder.path()).absoluteFilePath());
}

// A number counts as it stands in its field, which nobody has to leave first.
TEST_F(Saving, ANumberThatIsTypedIsAskedBeforeItsFieldIsLeft) {
  ask(small_query());
  const std::int64_t before = document().plan->workload.prompts_per_step;
  auto* prompts = named<QSpinBox>(window, "Prompts a step");
  prompts->setFocus();
  prompts->selectAll();
  for (const QChar digit : QString::number(2 * before)) {
    QTest::keyClicks(prompts, digit);  // slowly, as some type
    ASSERT_TRUE(wait_for([&] { return window.explore().form()->isSettled(); }));
  }
  ASSERT_TRUE(prompts->hasFocus());
  ASSERT_TRUE(wait_for([&] {
    return document().valid() && document().plan->workload.prompts_per_step == 2 * before;
  }));
  press(Qt::Key_Z);  // all of it is one edit
  EXPECT_EQ(document().question, small_query());
  EXPECT_EQ(prompts->value(), before);
}

// The file is never of another question than the form's.
TEST_F(Saving, NothingIsSavedFromTheMomentOfAnEdit) {
  ask(small_query());
  const QString file = folder.filePath("a.json");
  ASSERT_TRUE(window.session().savePlan(file));
  const auto bytes = [&] {
    QFile opened(file);
    return opened.open(QFile::ReadOnly) ? opened.readAll() : QByteArray();
  };
  const QByteArray saved = bytes();
  auto* prompts = named<QSpinBox>(window, "Prompts a step");
  const auto type = [&](std::int64_t number) {
    prompts->setFocus();
    prompts->selectAll();
    QTest::keyClicks(prompts, QString::number(number));
  };
  const std::int64_t twice = std::int64_t{2} * prompts->value();
  QAction* save = nullptr;
  for (QAction* action : window.findChildren<QAction*>()) {
    if (action->shortcut() == QKeySequence(QKeySequence::Save)) save = action;
  }
  ASSERT_NE(save, nullptr);
  ASSERT_TRUE(save->isEnabled());
  type(twice);
  EXPECT_FALSE(save->isEnabled());
  QTest::keyClick(prompts, Qt::Key_Tab);
  QTest::keyClick(&window, Qt::Key_S, Qt::ControlModifier);
  EXPECT_EQ(bytes(), saved);
  ASSERT_TRUE(wait_for(
      [&] { return document().valid() && document().plan->workload.prompts_per_step == twice; }));
  ASSERT_TRUE(wait_for([&] { return save->isEnabled(); }));
  // What changes nothing in the end may be saved again.
  type(twice);
  ASSERT_TRUE(wait_for([&] { return save->isEnabled(); }));
  // A key plans what stands in the field.
  type(twice / 2);
  QTest::keyClick(&window, Qt::Key_F5);
  EXPECT_EQ(document().question.batch, WorkloadChange{});
  EXPECT_TRUE(document().planning);
}

}  // namespace
}  // namespace tessera::gui
