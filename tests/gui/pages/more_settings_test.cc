// SPDX-License-Identifier: GPL-3.0-or-later
// Settings behind the degrees: asked by their boxes, and what cannot be says why.
#include <gtest/gtest.h>

#include <QComboBox>
#include <QScrollArea>
#include <QScrollBar>
#include <QToolButton>
#include <QWheelEvent>
#include <algorithm>
#include <vector>

#include "gui/document/text.h"
#include "gui/form/degree_grid.h"
#include "tests/gui/explore_flow.h"

namespace tessera::gui {
namespace {

struct MoreSettings : Explore {
  QComboBox* box(const QString& name) { return named<QComboBox>(window, name); }
  DegreeGrid* grid() { return window.findChild<DegreeGrid*>(); }
};

TEST_F(MoreSettings, AreBehindAButtonAndAskedLikeDegrees) {
  ask(small_query());
  QComboBox* zero = box("actor.zero");
  ASSERT_NE(zero, nullptr);
  EXPECT_EQ(box("rollout.zero"), nullptr);
  EXPECT_FALSE(zero->isVisible());
  QTest::mouseClick(grid()->findChild<QToolButton*>(), Qt::LeftButton);
  EXPECT_TRUE(zero->isVisible());
  zero->setCurrentText("1");
  ASSERT_TRUE(wait_for([&] {
    return document().question.fixed == std::vector<std::string>{"actor.zero=1"} &&
           !window.session().isBusy();
  }));
  EXPECT_TRUE(document().valid());
  // What a question fixes is in sight, and no word beside.
  PlanQuery other = small_query();
  other.fixed = {"actor.cp=2", "actor.recompute=full"};
  ask(other);
  EXPECT_EQ(box("actor.cp")->currentText(), "2");
  EXPECT_EQ(zero->currentText(), "");
  EXPECT_EQ(window.explore().form()->query().fixed, other.fixed);
}

// 7B stands before 14B.
TEST_F(MoreSettings, ModelsStandInTheOrderOfTheirSizes) {
  std::vector<int> places;
  for (const char* size : {"0.5b", "1.5b", "3b", "7b", "14b", "32b", "72b"}) {
    for (const QComboBox* each : window.explore().form()->findChildren<QComboBox*>()) {
      const int at = each->findText(QString("qwen2.5-") + size);
      if (at >= 0) places.push_back(at);
    }
  }
  EXPECT_EQ(places.size(), 7U);
  EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
}

TEST_F(MoreSettings, ThatAQuestionFixesAreInSight) {
  PlanQuery query = small_query();
  query.fixed = {"actor.zero=1"};
  ask(query);
  EXPECT_TRUE(box("actor.zero")->isVisible());
  EXPECT_EQ(box("actor.zero")->currentText(), "1");
}

TEST_F(MoreSettings, AreGreyExactlyWhereNoPlanHasThem) {
  PlanQuery query = small_query();
  ask(query);
  QTest::mouseClick(grid()->findChild<QToolButton*>(), Qt::LeftButton);
  for (const char* name : {"actor.ep", "critic.zero"}) {
    box(name)->setFocus(Qt::TabFocusReason);
    ASSERT_TRUE(wait_for([&] { return !grid()->isChecking(); }));
    int cannot = 0;
    for (int item = 1; item < box(name)->count(); ++item) {
      const QString value = box(name)->itemText(item);
      PlanQuery asked = query;
      asked.fixed.push_back(name + std::string("=") + value.toStdString());
      const bool has = std::holds_alternative<SharedPlan>(answer(asked).result);
      EXPECT_EQ(box(name)->itemData(item, Qt::ForegroundRole).isValid(), !has)
          << asked.fixed.front();
      EXPECT_EQ(box(name)->itemData(item, Qt::ToolTipRole).toString().isEmpty(), has);
      cannot += has ? 0 : 1;
    }
    EXPECT_TRUE(cannot > 0 || name != std::string("actor.ep"));  // the model is dense
  }
}

// What stands in the table can be chosen.
TEST_F(MoreSettings, ThePlacementsOfTheTableAreInTheList) {
  ask({.model = "qwen2.5-0.5b", .cluster = "h100-8", .workload = "grpo-7b-1k"});
  const auto* list = named<QComboBox>(window, "Placement");
  ASSERT_NE(list, nullptr);
  const PlanTableModel& plans = *window.session().plans();
  bool apart = false;
  for (int row = 0; row < plans.rowCount(); ++row) {
    const QString placement = toText(plans.row(row).summary.placement).section(',', 0, 0);
    EXPECT_GE(list->findData(placement), 0) << placement.toStdString();
    apart = apart || placement.contains("| rollout");
  }
  EXPECT_TRUE(apart) << "one of them has its rollout apart";
}

// Slower than the form waits: every letter is planned, and none is a change of its own.
TEST_F(MoreSettings, WhatIsTypedBeforeALineIsLeftIsOneChange) {
  ask(small_query());
  const auto type = [&](QWidget* line, const char* letters) {
    line->setFocus(Qt::TabFocusReason);
    QTest::keyClick(line, Qt::Key_End);
    for (const char* letter = letters; *letter != 0; ++letter) {
      QTest::keyClick(line, *letter);
      rest(160);
    }
    ASSERT_TRUE(wait_for([&] { return !window.session().isBusy(); }));
  };
  const auto fixed = [&] { return document().question.fixed; };
  using Words = std::vector<std::string>;
  auto* others = named<QLineEdit>(window, "Other settings");
  ASSERT_NE(others, nullptr);
  type(others, "actor.zero=1");
  EXPECT_EQ(fixed(), Words{"actor.zero=1"});
  type(box("actor.tp"), "12\b\b2");
  EXPECT_EQ(fixed(), (Words{"actor.tp=2", "actor.zero=1"}));
  type(others, " actor.pp=2");
  EXPECT_EQ(fixed().size(), 3U);
  for (const Words& before :
       {Words{"actor.tp=2", "actor.zero=1"}, Words{"actor.zero=1"}, Words{}}) {
    window.session().undo();
    EXPECT_EQ(fixed(), before);
  }
  EXPECT_FALSE(window.session().canUndo());
  // A line that was emptied by it begins anew.
  type(others, "actor.pp=2");
  window.session().undo();
  EXPECT_EQ(fixed(), Words{});
}

// Over a field that has not the keys the wheel goes on to the page, and gives it none.
TEST_F(MoreSettings, AreNotChangedByAWheelThatPasses) {
  window.resize(1280, 500);
  ask(small_query());
  box("Model")->setFocus();
  QScrollArea* area = nullptr;
  for (QScrollArea* each : window.findChildren<QScrollArea*>()) {
    if (each->isAncestorOf(window.explore().form())) area = each;
  }
  ASSERT_NE(area, nullptr);
  ASSERT_TRUE(wait_for([&] { return area->verticalScrollBar()->maximum() > 0; }));
  const PlanQuery before = window.explore().form()->query();
  for (const char* name :
       {"Workload", "Nodes", "Engine", "Prompts a step", "Memory risk", "actor.tp"}) {
    auto* field = named<QWidget>(window, name);
    ASSERT_NE(field, nullptr) << name;
    area->verticalScrollBar()->setValue(0);
    const QPoint centre = field->rect().center();
    QWheelEvent wheel(centre, field->mapToGlobal(centre), {}, {0, -240}, Qt::NoButton,
                      Qt::NoModifier, Qt::NoScrollPhase, false);
    QSpontaneKeyEvent::setSpontaneous(&wheel);  // as a hand turns it
    qApp->notify(field, &wheel);
    EXPECT_GT(area->verticalScrollBar()->value(), 0) << name;
    EXPECT_FALSE(field->hasFocus()) << name;
    EXPECT_EQ(window.explore().form()->query(), before) << name;
  }
}

}  // namespace
}  // namespace tessera::gui
