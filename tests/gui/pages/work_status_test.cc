// SPDX-License-Identifier: GPL-3.0-or-later
// What takes longer than a moment is told, can be cancelled, and gone on with.
#include "gui/pages/work_status.h"

#include <gtest/gtest.h>

#include <QSemaphore>
#include <atomic>
#include <chrono>
#include <thread>

#include "cost_models/documents/stopped.h"
#include "gui/document/plan_job.h"
#include "planner/plan/plan.h"
#include "tests/gui/explore_flow.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

/// A job of a plan that ends when it may.
struct Slow {
  QSemaphore may_end;
  PlanJob<int> job{[this](const Plan&, const Calibration&, const std::stop_token&) {
    may_end.acquire();
    return 7;
  }};

  Slow() { job.setPlan(shared(digits_plan()), calibration_of(digits_plan())); }
  ~Slow() { may_end.release(8); }
};

TEST(PlanJob, WhatIsCancelledDoesNotBeginAgainByItself) {
  Slow slow;
  PlanJob<int>& job = slow.job;
  job.want();
  EXPECT_TRUE(job.isBusy());
  job.cancel();
  EXPECT_FALSE(job.isBusy());
  EXPECT_TRUE(job.isCancelled());
  EXPECT_TRUE(job.whyNone("Counting").contains("Counting"));
  job.want();  // as a view that is drawn again does
  EXPECT_FALSE(job.isBusy());
  // What goes on does not wait for what nobody hears.
  job.goOn();
  EXPECT_TRUE(job.isBusy());
  slow.may_end.release(2);
  ASSERT_TRUE(wait_for([&] { return job.facts() != nullptr; }));
  EXPECT_EQ(*job.facts(), 7);
  EXPECT_FALSE(job.isCancelled());
  // Of another plan nothing was cancelled.
  job.setPlan(shared(free_plan()), calibration_of(free_plan()));
  job.want();
  job.cancel();
  job.setPlan(shared(digits_plan()), calibration_of(digits_plan()));
  EXPECT_FALSE(job.isCancelled());
}

/// A job that ends when it is told to stop, and then gives no facts.
struct Stoppable {
  std::atomic<int> begun = 0, ended = 0;
  PlanJob<int> job{[this](const Plan&, const Calibration&, const std::stop_token& stop) -> int {
    ++begun;
    while (!stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ++ended;
    throw Stopped();
  }};

  Stoppable() { job.setPlan(shared(digits_plan()), calibration_of(digits_plan())); }
  bool begins(int count) {
    job.want();
    return wait_for([&] { return begun == count; });
  }
};

TEST(PlanJob, WorkThatIsCancelledEnds) {
  Stoppable slow;
  ASSERT_TRUE(slow.begins(1));
  slow.job.cancel();
  EXPECT_TRUE(wait_for([&] { return slow.ended == 1; }));
  slow.job.goOn();
  ASSERT_TRUE(slow.begins(2));
  // So does that of a plan that is not looked at any more.
  slow.job.setPlan(shared(free_plan()), calibration_of(free_plan()));
  EXPECT_TRUE(wait_for([&] { return slow.ended == 2; }));
  ASSERT_TRUE(slow.begins(3));  // it ends with the job
  EXPECT_TRUE(slow.job.problem().isEmpty());
}

TEST(Newest, WorkThatNewerWorkReplacesEnds) {
  std::atomic<int> ended = 0;
  int heard = 0;
  {
    Newest<int> newest;  // one at a time: the newer begins where the older has ended
    const auto work = [&](const std::stop_token& stop) {
      while (!stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return static_cast<int>(++ended);
    };
    newest.start(work, [&](int) { ++heard; });
    newest.start([] { return 7; }, [&](int answer) { heard += answer; });
    EXPECT_TRUE(wait_for([&] { return heard > 0; }));
    newest.start(work, [&](int) { ++heard; });
  }
  EXPECT_EQ(heard, 7);
}

TEST(WorkStatus, SaysWhatTakesLongAndEndsTheWait) {
  Slow slow;
  WorkStatus status({{"Counting", [&] { return slow.job.isBusy(); }, [&] { slow.job.cancel(); },
                      [&] { return slow.job.isCancelled(); }, [&] { slow.job.goOn(); }}});
  QObject::connect(&slow.job, &PlanWatch::changed, &status, &WorkStatus::look);
  const auto button = [&](const QString& text) {
    for (QPushButton* each : status.findChildren<QPushButton*>()) {
      if (each->text() == text) return each;
    }
    return static_cast<QPushButton*>(nullptr);
  };
  int changes = 0;
  QObject::connect(&status, &WorkStatus::changed, [&] { ++changes; });
  EXPECT_TRUE(status.isHidden());
  slow.job.want();
  EXPECT_TRUE(status.isHidden()) << "what is quick does not flicker";
  ASSERT_TRUE(wait_for([&] { return status.isWaiting(); }));
  EXPECT_FALSE(status.isHidden());
  EXPECT_EQ(changes, 1);
  EXPECT_TRUE(status.findChild<QLabel*>()->text().startsWith("Counting: "));
  button("Cancel")->click();
  EXPECT_FALSE(status.isWaiting());
  EXPECT_FALSE(slow.job.isBusy());
  EXPECT_EQ(status.findChild<QLabel*>()->text(), "Cancelled: Counting");
  EXPECT_TRUE(button("Cancel")->isHidden());
  button("Go on")->click();
  EXPECT_TRUE(slow.job.isBusy());
  slow.may_end.release(2);
  ASSERT_TRUE(wait_for([&] { return slow.job.facts() != nullptr; }));
  EXPECT_TRUE(status.isHidden());
}

/// Of the front, which this asks for as the tab Trade-offs does.
TEST_F(Explore, AFrontThatIsCancelledIsNotLookedForUntilItIsWanted) {
  ask(small_query());
  window.session().wantFront();
  ASSERT_TRUE(window.session().front().isLooking());
  window.session().cancelFront();
  window.session().wantFront();
  EXPECT_FALSE(window.session().front().isBusy());
  EXPECT_TRUE(window.session().front().isCancelled());
  window.session().goOnWithFront();
  EXPECT_TRUE(window.session().front().isLooking());
  ASSERT_TRUE(wait_for([&] { return !window.session().front().isBusy(); }));
  EXPECT_GT(window.session().plans()->rowCount(), 0);
}

}  // namespace
}  // namespace tessera::gui
