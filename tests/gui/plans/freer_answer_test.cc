// SPDX-License-Identifier: GPL-3.0-or-later
// What the window says of a choice that is fixed, beside the answer without it.
#include <gtest/gtest.h>

#include "gui/document/headline.h"
#include "gui/models/session.h"
#include "planner/plan/plan.h"
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
  const QString cost = cost_of_fixed_text(*session.plan(), document.question, document.freer[0]);
  EXPECT_TRUE(cost.startsWith("row 1 takes ")) << cost.toStdString();
  EXPECT_TRUE(cost.contains(" longer than the plan without actor.tp=8: ")) << cost.toStdString();

  ask({"actor.tp=8", "actor.pp=1"});
  ASSERT_EQ(document.freer.size(), 2u);
  EXPECT_EQ(fixed_beyond(document.question, document.freer[1].question), "actor.pp=1");
  ask({"actor.tp=4"});
  EXPECT_EQ(document.freer.size(), 1u);
  PlanQuery other = open;
  other.risk = 0.1;
  other.fixed = {"actor.tp=4"};
  session.ask(other);
  ASSERT_TRUE(wait_for([&] { return !session.isBusy(); }));
  EXPECT_TRUE(document.freer.empty()) << "another question";
}

}  // namespace
}  // namespace tessera::gui
