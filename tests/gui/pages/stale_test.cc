// SPDX-License-Identifier: GPL-3.0-or-later
// Whatever answers an earlier question is seen to do so, until the answer is there.
#include <gtest/gtest.h>

#include <QImage>
#include <QTableView>
#include <fstream>
#include <iomanip>
#include <string_view>

#include "gui/views/message_bar.h"
#include "gui/views/stale_cover.h"
#include "gui/views/view.h"
#include "tests/gui/explore_flow.h"

namespace tessera::gui {
namespace {

/// It lies under a cover that is seen as soon as its page is.
bool isCovered(const QWidget* widget) {
  for (const QWidget* at = widget; at != nullptr; at = at->parentWidget()) {
    for (const QObject* child : at->children()) {
      const auto* cover = dynamic_cast<const StaleCover*>(child);
      if (cover != nullptr && !cover->isHidden() && cover->geometry() == at->rect()) return true;
    }
  }
  return false;
}

class Stale : public Explore {
 protected:
  /// What says something of the plan that is shown.
  std::vector<QWidget*> answering() {
    std::vector<QWidget*> all{named<MessageBar>(window, "Answer")};
    for (const Place place : {Place::plans, Place::left, Place::tabs, Place::right, Place::whole}) {
      for (const ViewKind& kind : viewsOf(place)) {
        if (std::string_view(kind.name) == "pinned") continue;  // of no question
        all.push_back(window.findChild<QWidget*>(kind.name));
      }
    }
    return all;
  }
  static PlanQuery edited() {
    PlanQuery query = small_query();
    query.fixed = {"actor.tp=4"};
    return query;
  }
  static QString nameOf(const QWidget* widget) {
    return widget->objectName() + " " + widget->accessibleName();
  }
};

TEST_F(Stale, NothingOfTheEarlierAnswerIsSeenAsTheNewOne) {
  ask(small_query());
  const QString before = named<MessageBar>(window, "Answer")->text();
  for (const QWidget* widget : answering()) {
    EXPECT_FALSE(isCovered(widget)) << nameOf(widget).toStdString();
  }
  window.session().ask(edited());  // its answer comes with a later event
  for (const QWidget* widget : answering()) {
    EXPECT_TRUE(isCovered(widget)) << nameOf(widget).toStdString();
  }
  EXPECT_EQ(named<MessageBar>(window, "Answer")->accessibleDescription(), StaleCover::says());
  ASSERT_TRUE(wait_for([&] { return document().valid(); }));
  for (const QWidget* widget : answering()) {
    EXPECT_FALSE(isCovered(widget)) << nameOf(widget).toStdString();
  }
  EXPECT_NE(named<MessageBar>(window, "Answer")->text(), before);
  EXPECT_TRUE(named<MessageBar>(window, "Answer")->accessibleDescription().isEmpty());
}

// What says that nothing answers the question is about this question.
TEST_F(Stale, PinnedPlansStayClear) {
  ask(small_query());
  window.session().pin();
  auto* pinned = window.findChild<QWidget*>("pinned")->findChild<QTableView*>();
  auto* mesh = window.findChild<QWidget*>("mesh");
  ASSERT_TRUE(pinned != nullptr && pinned->isVisible());
  QCoreApplication::processEvents();
  const auto seen = [&](QWidget* part) {
    return window.grab(QRect(part->mapTo(&window, QPoint(0, 0)), part->size())).toImage();
  };
  const QImage of_pins = seen(pinned), of_plan = seen(mesh);
  window.session().ask(edited());  // its answer comes with a later event
  EXPECT_EQ(seen(pinned), of_pins);
  EXPECT_NE(seen(mesh), of_plan);
}

TEST_F(Stale, TheLineIsOfTheQuestionOnceItIsNotPlanned) {
  ask(small_query());
  window.session().ask(edited());
  window.session().cancel();
  EXPECT_FALSE(isCovered(named<MessageBar>(window, "Answer")));
  EXPECT_TRUE(isCovered(named<QTableView>(window, "Ranked plans")));
}

// The report under the hatching is that of the plan, as it was.
TEST_F(Stale, TheReportSaysNothingOfAQuestionThatHasNoAnswer) {
  ask(small_query());
  showTab("Report");
  auto* report = named<QPlainTextEdit>(window, "Report of the plan and its proof");
  const QString before = report->toPlainText();
  EXPECT_TRUE(before.startsWith("Proven best of the space")) << before.toStdString();
  PlanQuery refused = small_query();
  refused.fixed = {"actor.tp=4"};
  refused.batch.prompts_per_step = 509;
  ask(refused);
  ASSERT_FALSE(document().problems.empty());
  EXPECT_EQ(report->toPlainText(), before);
  ask(small_query());
  EXPECT_TRUE(report->toPlainText().startsWith("Proven best of the space"));
}

// A run whose folder has no plan is held against the one that is shown where its steps name that
// one's prediction.
TEST_F(Stale, ARunThatIsHeldAgainstAnEarlierAnswerSaysSo) {
  const QString data = QString(TESSERA_SOURCE_DIR) + "/tests/gui/data/run";
  ask(small_query());
  std::ofstream(folder.filePath("metrics.jsonl").toStdString())
      << std::setprecision(17) << "{\"step\": 1, \"data\": {\"timing_s/step\": 1, "
      << "\"plan/predicted_step_s\": " << document().plan->prediction.step_s.value << "}}\n";
  for (const bool own : {false, true}) {
    ASSERT_TRUE(window.openRun(own ? data : folder.path(), false));
    window.session().ask(edited());
    for (const char* view : {"gaps", "comparison", "rules"}) {
      EXPECT_EQ(isCovered(window.findChild<QWidget*>(view)), !own) << view;
    }
    EXPECT_FALSE(isCovered(window.findChild<QWidget*>("ranks")));
    ask(small_query());
    EXPECT_FALSE(isCovered(window.findChild<QWidget*>("gaps")));
  }
}

}  // namespace
}  // namespace tessera::gui
