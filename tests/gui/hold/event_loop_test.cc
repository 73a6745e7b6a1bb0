// SPDX-License-Identifier: GPL-3.0-or-later
// A watchdog on the window's event loop: whatever takes long is done elsewhere.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "tests/gui/event_loop.h"
#include "tests/gui/explore_flow.h"

namespace tessera::gui {
namespace {

const QString kRun = QString(TESSERA_SOURCE_DIR) + "/tests/gui/data/run";

class EventLoop : public Explore {
 protected:
  /// The least of three turns: processors that are shared slow a thread's own clock, too.
  double held(const std::function<void(int turn)>& flow) {
    double least = 1;
    for (int turn = 0; turn < 3 && least >= most_held_; ++turn) {
      least = std::min(least, longest_hold([&] { flow(turn); }));
    }
    RecordProperty("held_ms", static_cast<int>(1000 * least));
    return least;
  }

  const double most_held_ = most_held();
};

TEST_F(EventLoop, GoesOnWhileEditsArePlannedAndDrawn) {
  ask(small_query());
  const auto edits = [&](int turn) {
    for (const char* fixed : {"actor.tp=2", "actor.tp=4", "rollout.tp=2"}) {
      PlanQuery query = small_query();
      query.fixed = {fixed, turn == 1 ? "actor.zero=1" : "actor.pp=1"};
      ask(query);
      rest(20);
    }
    window.session().undo();
    ASSERT_TRUE(wait_for([&] { return !window.session().isBusy(); }));
  };
  EXPECT_LT(held(edits), most_held_);
}

TEST_F(EventLoop, GoesOnWhileARunOfTwentyThousandStepsIsOpened) {
  constexpr int kSteps = 20'000;
  const auto write = [&](int turn) {
    const QString run = folder.filePath(QString("run%1").arg(turn));
    std::filesystem::create_directories(run.toStdString());
    std::ofstream file((run + "/metrics.jsonl").toStdString());
    for (int step = 1; step <= kSteps; ++step) {
      file << "{\"step\": " << step << ", \"data\": {\"critic/score/mean\": " << step % 100
           << ", \"perf/throughput\": " << 400 + step % 7 << ", \"actor/ppo_kl\": " << step % 9
           << ", \"timing_s/gen\": 1, \"timing_s/update_actor\": 2, \"timing_s/step\": 3}}\n";
    }
    return run;
  };
  for (int turn = 0; turn < 3; ++turn) write(turn);
  window.showPage(&window.run());
  const auto open = [&](int turn) {
    ASSERT_TRUE(window.openRun(folder.filePath(QString("run%1").arg(turn))));
    ASSERT_TRUE(wait_for([&] { return window.session().run()->steps()->rowCount() == kSteps; }));
    rest(50);
  };
  EXPECT_LT(held(open), most_held_);
}

TEST_F(EventLoop, GoesOnWhileAStepIsSimulatedAndPagesAreTurned) {
  ask(small_query());
  ASSERT_TRUE(window.openRun(kRun, false));
  const auto turn_pages = [&](int) {
    for (QWidget* page :
         {static_cast<QWidget*>(&window.understand()), static_cast<QWidget*>(&window.run()),
          static_cast<QWidget*>(&window.explore())}) {
      window.showPage(page);
      ASSERT_TRUE(wait_for([&] { return !window.session().isWorking(); }));
      rest(20);
    }
  };
  EXPECT_LT(held(turn_pages), most_held_);
}

}  // namespace
}  // namespace tessera::gui
