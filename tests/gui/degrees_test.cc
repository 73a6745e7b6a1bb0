// SPDX-License-Identifier: GPL-3.0-or-later
// Degrees that cannot be are grey and say why, and checking them keeps nobody waiting.
#include "gui/form/degree_grid.h"

#include <gtest/gtest.h>

#include <QAbstractItemView>
#include <QMessageBox>
#include <algorithm>

#include "tests/gui/event_loop.h"
#include "tests/gui/explore_flow.h"

namespace tessera::gui {
namespace {

struct Degrees : Explore {
  QComboBox* box(const QString& name) { return named<QComboBox>(window, name); }
  QLabel* why() { return window.findChild<QLabel*>("why"); }
  /// Comes to a box by Tab, and waits until all its values are known.
  void visit(QComboBox* box) {
    box->setFocus(Qt::TabFocusReason);
    ASSERT_TRUE(wait_for([&] { return !grid()->isChecking(); }));
  }
  DegreeGrid* grid() { return window.findChild<DegreeGrid*>(); }
  static bool grey(const QComboBox* box, const QString& value) {
    return box->itemData(box->findText(value), Qt::ForegroundRole).isValid();
  }
  static QString reason(const QComboBox* box, const QString& value) {
    return box->itemData(box->findText(value), Qt::ToolTipRole).toString();
  }
};

TEST_F(Degrees, AValueIsGreyExactlyWhereNoPlanHasIt) {
  PlanQuery query = small_query();
  query.fixed = {"actor.pp=2"};
  ask(query);
  for (const char* name : {"actor.tp", "rollout.dp", "critic.gpus"}) {
    visit(box(name));
    for (int item = 1; item < box(name)->count(); ++item) {
      const QString value = box(name)->itemText(item);
      PlanQuery asked = query;
      asked.fixed.push_back(name + std::string("=") + value.toStdString());
      const bool has = std::holds_alternative<SharedPlan>(answer(asked).result);
      EXPECT_EQ(grey(box(name), value), !has) << name << "=" << value.toStdString();
      EXPECT_EQ(reason(box(name), value).isEmpty(), has);
    }
  }
}

TEST_F(Degrees, TheReasonNamesWhatIsInTheWay) {
  ask(small_query());
  visit(box("actor.tp"));
  EXPECT_EQ(reason(box("actor.tp"), "16"),
            "actor.tp=16 does not divide a node of 8 GPUs, which tensor parallelism stays in");
  visit(box("actor.pp"));
  EXPECT_EQ(reason(box("actor.pp"), "64"),
            "actor.pp=64 needs more than the 8 GPUs that the cluster has");
  PlanQuery wide = small_query();
  wide.cluster = "h100-64";
  wide.nodes = 8;
  ask(wide);
  visit(box("actor.pp"));
  EXPECT_EQ(reason(box("actor.pp"), "32"),
            "actor.pp=32: the model has only 24 layers, and a pipeline stage needs one at least");
}

// No degree is to blame for a workload that no plan can have.
TEST_F(Degrees, AQuestionThatIsRefusedWhateverItFixesBlamesNone) {
  PlanQuery query = small_query();
  query.batch.prompts_per_step = 509;
  query.fixed = {"actor.tp=4"};
  ask(query);
  ASSERT_FALSE(document().problems.empty());
  visit(box("actor.tp"));
  EXPECT_FALSE(grey(box("actor.tp"), "2"));
  QTest::keyClick(box("actor.tp"), Qt::Key_Question);
  EXPECT_TRUE(why()->text().contains("prompts_per_step = 509")) << why()->text().toStdString();
  EXPECT_FALSE(why()->text().contains("actor.tp")) << why()->text().toStdString();
}

TEST_F(Degrees, MemoryIsAReasonToo) {
  ask({.model = "qwen2.5-14b",
       .cluster = "h100-8",
       .workload = "grpo-7b-1k",
       .fixed = {"rollout.max_sequences=1024"}});
  visit(box("rollout.tp"));
  ASSERT_TRUE(grey(box("rollout.tp"), "1"));
  const QString why = reason(box("rollout.tp"), "1");
  EXPECT_TRUE(why.startsWith("rollout.tp=1 cannot be: rank ")) << why.toStdString();
  EXPECT_TRUE(why.contains("too much; largest part kv_cache")) << why.toStdString();
}

TEST_F(Degrees, AQuestionMarkAsksWhyAndNotForTheKeys) {
  ask(small_query());
  visit(box("actor.tp"));
  EXPECT_FALSE(why()->isVisible());
  QTest::keyClick(box("actor.tp"), '?');
  EXPECT_EQ(QApplication::activeModalWidget(), nullptr);
  EXPECT_EQ(box("actor.tp")->currentText(), "");
  ASSERT_TRUE(why()->isVisible());
  EXPECT_TRUE(why()->text().contains("actor.tp=16 does not divide")) << why()->text().toStdString();
  EXPECT_FALSE(why()->text().contains("actor.tp=2"));
  QTest::keyClick(box("actor.tp"), Qt::Key_Tab);
  EXPECT_FALSE(why()->isVisible());
}

TEST_F(Degrees, AValueThatIsPointedToInTheListSaysWhyAndMayBeAskedAllTheSame) {
  ask(small_query());
  QComboBox* degree = box("actor.tp");
  visit(degree);
  QTest::keyClick(degree, Qt::Key_Down, Qt::AltModifier);
  ASSERT_TRUE(wait_for([&] { return degree->view()->isVisible(); }));
  const int from = degree->view()->currentIndex().row();
  for (int row = from; row < degree->findText("16"); ++row) {
    QTest::keyClick(degree->view(), Qt::Key_Down);
  }
  EXPECT_EQ(degree->view()->currentIndex().data().toString(), "16");
  EXPECT_TRUE(wait_for([&] { return why()->text().startsWith("actor.tp=16"); }))
      << why()->text().toStdString();
  QTest::keyClick(degree->view(), Qt::Key_Return);
  ASSERT_TRUE(wait_for([&] { return document().none_fits.has_value(); }));
  EXPECT_EQ(document().question.fixed, std::vector<std::string>{"actor.tp=16"});
}

TEST_F(Degrees, AnotherQuestionForgetsTheAnswers) {
  ask(small_query());
  visit(box("actor.tp"));
  ASSERT_TRUE(grey(box("actor.tp"), "16"));
  EXPECT_FALSE(grey(box("actor.tp"), "8"));
  PlanQuery four = small_query();
  four.gpus_per_node = 4;
  window.session().ask(four);
  EXPECT_FALSE(grey(box("actor.tp"), "16"));  // until it is known anew
  ASSERT_TRUE(wait_for([&] { return !grid()->isChecking(); }));
  EXPECT_TRUE(grey(box("actor.tp"), "8"));
}

// Marks change the chosen item, and that must not bring it back.
TEST_F(Degrees, AChosenValueIsGoneOnceAnotherQuestionHasNone) {
  ask(small_query());
  QComboBox* degree = box("actor.tp");
  visit(degree);
  degree->setCurrentIndex(degree->findText("8"));
  ASSERT_TRUE(wait_for([&] { return document().valid() && !document().question.fixed.empty(); }));
  PlanQuery four = small_query();
  four.gpus_per_node = 4;
  window.session().ask(four);
  EXPECT_EQ(degree->currentText(), "");
  visit(degree);
  ASSERT_TRUE(grey(degree, "8"));
  EXPECT_EQ(degree->currentText(), "");
  EXPECT_TRUE(document().question.fixed.empty());
}

TEST_F(Degrees, CheckingNeverHoldsTheEventLoopFiftyMilliseconds) {
  const double most = most_held();
  double hold = 1;
  for (int nodes = 8; nodes > 5 && hold >= most; --nodes) {
    ask({.model = "qwen2.5-32b", .cluster = "h100-64", .workload = "ppo-7b-1k", .nodes = nodes});
    const double longest = longest_hold([&] {
      for (const char* name : {"actor.tp", "rollout.tp", "actor.pp"}) {
        box(name)->setFocus(Qt::TabFocusReason);
        EXPECT_TRUE(wait_for([&] { return !grid()->isChecking(); }));
      }
    });
    EXPECT_TRUE(grey(box("actor.tp"), "16"));
    hold = std::min(hold, longest);
  }
  EXPECT_LT(hold, most);
}

}  // namespace
}  // namespace tessera::gui
