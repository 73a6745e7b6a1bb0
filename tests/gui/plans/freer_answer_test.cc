// SPDX-License-Identifier: GPL-3.0-or-later
// What the window says of a choice that is fixed, beside the answer without it.
#include <gtest/gtest.h>

#include <QComboBox>
#include <QSpinBox>

#include "gui/document/headline.h"
#include "gui/explore/shown_answer.h"
#include "gui/models/session.h"
#include "gui/pages/main_window.h"
#include "planner/plan/plan.h"
#include "tests/gui/explore_flow.h"
#include "tests/gui/window_flow.h"

namespace tessera::gui {
namespace {

// What a choice costs is told beside the answer that was there before it was made.
TEST(Session, AFixedChoiceIsComparedWithTheAnswerThatLeftItOpen) {
  Session session;
  const PlanQuery open{.model = "qwen2.5-0.5b", .cluster = "h100-8", .workload = "ppo-7b-1k"};
  const auto ask = [&](std::vector<std::string> fixed) {
    PlanQuery query = open;
    query.fixed = std::move(fixed);
    session.ask(query);
    ASSERT_TRUE(wait_for([&] { return !session.isBusy(); }));
  };
  ask({});
  ASSERT_TRUE(session.document().valid());
  const SharedPlan free = session.plan();
  EXPECT_TRUE(session.document().freer.empty());
  ask({"actor.tp=64"});  // nothing fits, and what is known stays so
  ask({"actor.tp=8"});
  const Document& document = session.document();
  ASSERT_TRUE(document.valid());
  ASSERT_EQ(document.freer.size(), 1u);
  EXPECT_EQ(document.freer[0].plan, free);
  const double behind = session.plan()->prediction.step_s / free->prediction.step_s - 1;
  ASSERT_GT(behind, 0.001);
  const QString percent = QString::number(100 * behind, 'f', 1);
  EXPECT_EQ(behind_text(*session.plan(), document.question, document.freer[0]),
            percent + " % behind the plan without actor.tp=8");
  // Many are counted, so that the line has room for the cause.
  PlanQuery many = document.question;
  many.fixed = {"actor.tp=8", "rollout.max_sequences=8192"};
  EXPECT_EQ(behind_text(*session.plan(), many, document.freer[0]),
            percent + " % behind the plan without 2 fixed choices");
  // One is one, with however many words.
  many.fixed = {"placement=actor+reference | critic"};
  EXPECT_EQ(behind_text(*session.plan(), many, document.freer[0]),
            percent + " % behind the plan without placement=actor+reference | critic");

  ask({"actor.tp=8", "actor.pp=1"});
  ASSERT_EQ(document.freer.size(), 2u);
  EXPECT_EQ(fixed_beyond(document.question, document.freer[1].question), QStringList{"actor.pp=1"});
  ask({"actor.tp=4"});
  EXPECT_EQ(document.freer.size(), 1u);
  PlanQuery other = open;
  other.risk = 0.1;
  other.fixed = {"actor.tp=4"};
  session.ask(other);
  ASSERT_TRUE(wait_for([&] { return !session.isBusy(); }));
  EXPECT_TRUE(document.freer.empty()) << "another question";
}

// The cause is what the planner prices: the part of the step that became longer most.
TEST(Session, AFixedChoiceLosesForACauseThatIsNamed) {
  Session session;
  PlanQuery query{.model = "qwen2.5-32b", .cluster = "h800-64", .workload = "grpo-7b-1k"};
  const auto ask = [&](std::vector<std::string> fixed) {
    query.fixed = std::move(fixed);
    session.ask(query);
    ASSERT_TRUE(wait_for([&] { return !session.isBusy() && !session.isWorking(); }));
    ASSERT_TRUE(session.document().valid());
  };
  ask({});
  const SharedPlan free = session.plan();
  EXPECT_FALSE(session.compared()) << "nothing is fixed";
  ask({"actor.tp=8"});
  const SharedPlan fixed = session.plan();
  ASSERT_GT(fixed->prediction.exposed_comm_s - free->prediction.exposed_comm_s, 1);

  const ShownAnswer shown = shown_answer(session);
  const QString cause = "communication " + moreText(fixed->prediction.exposed_comm_s -
                                                    free->prediction.exposed_comm_s);
  EXPECT_TRUE(shown.line.freer.endsWith(" % behind the plan without actor.tp=8: " + cause))
      << shown.line.freer.toStdString() << " " << cause.toStdString();
  EXPECT_TRUE(shown.apart.startsWith("Row 1 takes ")) << shown.apart.toStdString();
  EXPECT_TRUE(shown.apart.contains(" longer than the plan without actor.tp=8: " + cause))
      << shown.apart.toStdString();
  EXPECT_TRUE(shown.apart.contains("(by phase: ")) << shown.apart.toStdString();
  // What is known to be better is not said to be perhaps so.
  EXPECT_TRUE(shown.proof.contains("Only plans with actor.tp=8 were searched.\n"));
  EXPECT_FALSE(shown.details().contains("may be better")) << shown.details().toStdString();

  session.selectRow(1);
  ASSERT_TRUE(wait_for([&] { return session.shownRow() == 1 && !session.isWorking(); }));
  const ShownAnswer second = shown_answer(session);
  EXPECT_TRUE(second.apart.contains("longer than row 1: ")) << second.apart.toStdString();
  EXPECT_FALSE(second.details().contains("may be better")) << second.details().toStdString();
}

// The window opens with a question that leaves the size to the cluster's file; the form states it.
TEST(Session, AFirstChoiceInTheFormIsComparedWithWhatTheWindowOpenedWith) {
  MainWindow window;
  window.show();
  const auto at_rest = [&] { return !window.session().isBusy() && !window.session().isWorking(); };
  window.session().ask({.model = "qwen2.5-0.5b", .cluster = "h100-8", .workload = "ppo-7b-1k"});
  ASSERT_TRUE(wait_for(at_rest));
  named<QComboBox>(window, "actor.tp")->setCurrentText("8");
  ASSERT_TRUE(wait_for([&] { return !window.session().document().question.fixed.empty(); }));
  ASSERT_TRUE(wait_for(at_rest));
  const Document& document = window.session().document();
  EXPECT_EQ(document.question.nodes, 1);
  ASSERT_EQ(document.freer.size(), 1u);
  EXPECT_TRUE(shown_answer(window.session()).line.freer.contains("without actor.tp=8: "));
  named<QSpinBox>(window, "Nodes")->setValue(2);
  ASSERT_TRUE(wait_for([&] { return document.question.nodes == 2; }));
  ASSERT_TRUE(wait_for(at_rest));
  EXPECT_TRUE(document.freer.empty()) << "another size";
}

// Nobody searched without it: what it costs is not known.
TEST(Session, AChoiceThatWasFixedFromTheBeginningMayHideABetterPlan) {
  Session session;
  session.ask({.model = "qwen2.5-0.5b",
               .cluster = "h100-8",
               .workload = "ppo-7b-1k",
               .fixed = {"actor.tp=2"}});
  ASSERT_TRUE(wait_for([&] { return !session.isBusy(); }));
  const ShownAnswer shown = shown_answer(session);
  EXPECT_TRUE(shown.apart.isEmpty());
  EXPECT_TRUE(shown.proof.contains("without that another may be better"));

  session.wantFreer();
  ASSERT_TRUE(wait_for([&] { return !session.isWorking(); }));
  const ShownAnswer known = shown_answer(session);
  EXPECT_TRUE(known.apart.contains("the plan without actor.tp=2")) << known.apart.toStdString();
  EXPECT_FALSE(known.details().contains("may be better"));
}

}  // namespace
}  // namespace tessera::gui
