// SPDX-License-Identifier: GPL-3.0-or-later
// Why not another choice: what is said where another thing than the step is minimised, and a dialog
// that waits for nobody.
#include <gtest/gtest.h>

#include <QPushButton>
#include <QSemaphore>

#include "gui/explore/shown_answer.h"
#include "gui/explore/why_not_dialog.h"
#include "gui/models/session.h"
#include "planner/plan/plan.h"
#include "planner/request/plan_value.h"
#include "tests/gui/explore_flow.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

PlanQuery query_by(const char* objective, std::vector<std::string> fixed = {}) {
  PlanQuery query = small_query();
  query.workload = "grpo-7b-1k";
  query.objective = objective;
  query.fixed = std::move(fixed);
  return query;
}

// Seconds are no cause of more GPUs or of a higher price.
TEST(WhyNot, IsToldInTheUnitOfWhatIsMinimised) {
  const auto ends = [](const char* objective, double worse) -> QString {
    const QString percent = differenceText(worse);
    const std::string_view name = objective;
    if (name == "gpus") return "needs 8 GPUs instead of the 1 of ";
    if (name == "cost") return "costs " + percent + " more than ";
    return "makes " + differenceText(1 - 1 / (1 + worse)) + " fewer tokens/s/GPU than ";
  };
  for (const char* objective : {"gpus", "cost", "tokens_per_s_per_gpu"}) {
    SCOPED_TRACE(objective);
    Session session;
    const auto ask = [&](const PlanQuery& query) {
      session.ask(query);
      ASSERT_TRUE(wait_for([&] { return !session.isBusy() && !session.isWorking(); }));
      ASSERT_TRUE(session.document().valid());
    };
    ask(query_by(objective));
    const SharedPlan free = session.plan();
    ask(query_by(objective, {"actor.tp=8"}));
    ASSERT_NE(gpus_of(*free), gpus_of(*session.plan()));
    const double worse = worse_by(*free, priced(*session.plan()));
    EXPECT_EQ(shown_answer(session).line.freer,
              ends(objective, worse) + "the plan without actor.tp=8");
    const WhyNotAnswer answer = why_not_answer(free, query_by(objective), "actor.tp=8");
    EXPECT_TRUE(answer.text.startsWith("The best plan with actor.tp=8 " + ends(objective, worse) +
                                       "this plan.\n"))
        << answer.text.toStdString();
  }
}

// In the window's words: an engine is a field of the form, not an option of a command.
TEST(WhyNot, AChoiceThatTheEngineHasNotIsToldOnce) {
  PlanQuery query = small_query();
  query.engine = "verl";
  const PlanAnswer found = answer(query);
  ASSERT_TRUE(std::holds_alternative<SharedPlan>(found.result));
  const auto& plan = std::get<SharedPlan>(found.result);
  const QString told = why_not_answer(plan, query, "actor.tp=8").text;
  EXPECT_TRUE(
      told.startsWith("No plan is possible: actor.tp=8 is beyond engine 'verl', which has 1 "
                      "there; plan for engine "))
      << told.toStdString();
  EXPECT_EQ(told.count("is beyond engine"), 1) << told.toStdString();
  EXPECT_FALSE(told.contains("--engine")) << told.toStdString();
}

// The table's rows are behind by the same measure.
TEST(WhyNot, RowsAreBehindByWhatIsMinimised) {
  const PlanAnswer found = answer(query_by("gpus"));
  Plan plan = *std::get<SharedPlan>(found.result);
  ASSERT_FALSE(plan.certificate.runner_up.empty());
  RunnerUp& second = plan.certificate.runner_up.front();
  second.gpus = 4 * gpus_of(plan);
  second.step_s = plan.prediction.step_s / 2;
  PlanTableModel model;
  model.setWinner(shared(plan));
  EXPECT_EQ(model.index(1, PlanTableModel::Worse).data().toString(), "+300.0 %");
}

class WhyNotDialogTest : public ::testing::Test {
 protected:
  /// A search that does not end before it is let go.
  void occupy() {
    searches.start([this] { return go_on.acquire(), WhyNotAnswer{}; }, [](const WhyNotAnswer&) {});
  }
  static void ask(WhyNotDialog& dialog, const QString& value) {
    named<QComboBox>(dialog, "Value")->setCurrentText(value);
    for (QPushButton* button : dialog.findChildren<QPushButton*>()) {
      if (button->text() == "&Ask") button->click();
    }
  }
  static QPushButton* plan_with_it(QWidget& dialog) {
    for (QPushButton* button : dialog.findChildren<QPushButton*>()) {
      if (button->text() == "&Plan with it") return button;
    }
    return nullptr;
  }
  void TearDown() override { go_on.release(); }

  SharedPlan plan = shared(free_plan());
  QSemaphore go_on;
  SettingChecks checks;
  Newest<WhyNotAnswer> searches;
};

TEST_F(WhyNotDialogTest, ClosesWhileItSearches) {
  occupy();
  {
    WhyNotDialog dialog(plan, small_query(), searches, checks);
    ask(dialog, "8");
    EXPECT_TRUE(searches.isBusy());
  }  // would wait for good
  EXPECT_FALSE(searches.isBusy());
}

// Engine verl trains without tensor parallelism: what it has not is grey, and says why.
TEST_F(WhyNotDialogTest, ValuesThatCannotBeAreGreyWithTheirReason) {
  PlanQuery query = small_query();
  query.engine = "verl";
  WhyNotDialog dialog(plan, query, searches, checks);
  auto* value = named<QComboBox>(dialog, "Value");
  ASSERT_EQ(named<QComboBox>(dialog, "Setting")->currentText(), "actor.tp");
  const QString chosen = value->currentText();
  ASSERT_TRUE(wait_for([&] { return !checks.isBusy(); }));
  const auto grey = [&](const char* text) {
    return value->itemData(value->findText(text), Qt::ForegroundRole).isValid();
  };
  const auto why = [&](const char* text) {
    return value->itemData(value->findText(text), Qt::ToolTipRole).toString();
  };
  EXPECT_FALSE(grey("1")) << why("1").toStdString();
  for (const char* text : {"2", "8", "64"}) {
    EXPECT_TRUE(grey(text)) << text;
    EXPECT_TRUE(why(text).contains("actor.tp=" + QString(text))) << why(text).toStdString();
  }
  EXPECT_EQ(value->currentText(), chosen);
}

// As the question's own line has it: "actor.tp=8".
TEST_F(WhyNotDialogTest, AChoiceIsTypedWhole) {
  WhyNotDialog dialog(plan, small_query(), searches, checks);
  dialog.show();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&dialog));
  auto* setting = named<QComboBox>(dialog, "Setting");
  setting->lineEdit()->setFocus();
  QTest::keyClicks(setting->lineEdit(), "rollout.tp=");
  auto* value = named<QComboBox>(dialog, "Value");
  EXPECT_TRUE(value->hasFocus());
  QTest::keyClicks(value->lineEdit(), "8");
  EXPECT_EQ(setting->currentText(), "rollout.tp");
  EXPECT_EQ(value->currentText(), "8");
}

TEST_F(WhyNotDialogTest, AnAnswerIsOfTheChoiceThatStandsThere) {
  WhyNotDialog dialog(plan, small_query(), searches, checks);
  auto* says = named<QPlainTextEdit>(dialog, "Why not");
  ask(dialog, "8");
  ASSERT_TRUE(wait_for([&] { return plan_with_it(dialog)->isEnabled(); }));
  EXPECT_TRUE(dialog.choice().has_value());
  named<QComboBox>(dialog, "Value")->setCurrentText("2");
  EXPECT_FALSE(plan_with_it(dialog)->isEnabled());
  EXPECT_EQ(says->toPlainText(), "") << "of tp=8";
  EXPECT_FALSE(dialog.choice().has_value());
  // One that comes later, too.
  ask(dialog, "8");
  named<QComboBox>(dialog, "Value")->setCurrentText("4");
  rest(500);
  EXPECT_FALSE(plan_with_it(dialog)->isEnabled());
  EXPECT_EQ(says->toPlainText(), "");
}

}  // namespace
}  // namespace tessera::gui
