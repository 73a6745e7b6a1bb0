// SPDX-License-Identifier: GPL-3.0-or-later
// Of the searches in the background only the newest counts.
#include "gui/document/planner_job.h"

#include <gtest/gtest.h>

#include <QCoreApplication>
#include <QElapsedTimer>
#include <atomic>
#include <future>
#include <stop_token>
#include <thread>
#include <vector>

#include "tests/gui/event_loop.h"

namespace tessera::gui {
namespace {

PlanAnswer answer_of(double seconds) {
  PlanAnswer answer;
  answer.seconds = seconds;
  return answer;
}

TEST(PlannerJob, OnlyTheNewestAnswerIsHeard) {
  PlannerJob job;
  std::vector<double> heard;
  QObject::connect(&job, &PlannerJob::answerAvailable,
                   [&](quint64, const PlanAnswer& answer) { heard.push_back(answer.seconds); });
  std::promise<void> gate;
  const std::shared_future<void> opened(gate.get_future());
  std::atomic<bool> first_ran = false;
  job.submit([&, opened](const std::stop_token&) {
    opened.wait();
    first_ran = true;
    return answer_of(1);
  });
  job.submit([](const std::stop_token&) { return answer_of(2); });
  ASSERT_TRUE(wait_for([&] { return !heard.empty(); }));
  gate.set_value();
  ASSERT_TRUE(wait_for([&] { return first_ran.load(); }));
  QElapsedTimer timer;
  timer.start();
  while (timer.elapsed() < 100) QCoreApplication::processEvents();
  EXPECT_EQ(heard, std::vector<double>{2});
  EXPECT_FALSE(job.isBusy());
}

TEST(PlannerJob, WorkThatIsReplacedOrCancelledIsToldToStop) {
  PlannerJob job;
  std::atomic<int> begun = 0, stopped = 0;
  const auto until_stopped = [&](const std::stop_token& stop) {
    ++begun;
    while (!stop.stop_requested()) std::this_thread::yield();
    ++stopped;
    return answer_of(1);
  };
  job.submit(until_stopped);
  ASSERT_TRUE(wait_for([&] { return begun == 1; }));
  job.submit(until_stopped);
  ASSERT_TRUE(wait_for([&] { return begun == 2 && stopped == 1; }));
  job.cancel();
  EXPECT_TRUE(wait_for([&] { return stopped == 2; }));
}

TEST(PlannerJob, WorkThatHasNotBegunWhenNewerComesNeverRuns) {
  PlannerJob job;
  std::promise<void> gate;
  const std::shared_future<void> opened(gate.get_future());
  std::atomic<int> started = 0, ran = 0;
  for (int i = 0; i < 4; ++i) {
    job.submit([&, opened](const std::stop_token&) {
      ++started;
      opened.wait();
      return answer_of(0);
    });
    ASSERT_TRUE(wait_for([&] { return started == i + 1; }));
  }
  for (int i = 0; i < 10; ++i) {
    job.submit([&](const std::stop_token&) {
      ++ran;
      return answer_of(3);
    });
  }
  gate.set_value();
  ASSERT_TRUE(wait_for([&] { return !job.isBusy(); }));
  EXPECT_EQ(ran, 1);
}

TEST(PlannerJob, WhatIsCancelledIsNotHeard) {
  PlannerJob job;
  int heard = 0;
  QObject::connect(&job, &PlannerJob::answerAvailable, [&] { ++heard; });
  std::atomic<bool> ran = false;
  job.submit([&](const std::stop_token&) {
    ran = true;
    return answer_of(1);
  });
  while (!ran) std::this_thread::yield();  // no events: nothing is delivered yet
  job.cancel();
  QElapsedTimer timer;
  timer.start();
  while (timer.elapsed() < 100) QCoreApplication::processEvents();
  EXPECT_EQ(heard, 0);
  EXPECT_FALSE(job.isBusy());
}

}  // namespace
}  // namespace tessera::gui
