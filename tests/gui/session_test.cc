// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/session.h"

#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QCoreApplication>
#include <QElapsedTimer>
#include <QTemporaryDir>
#include <atomic>
#include <fstream>
#include <future>
#include <thread>

#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

constexpr auto kFatal = QAbstractItemModelTester::FailureReportingMode::Fatal;
constexpr int kPatienceMs = 30000;

template <class Condition>
bool wait_for(const Condition& condition) {
  QElapsedTimer timer;
  timer.start();
  while (!condition() && timer.elapsed() < kPatienceMs) {
    QCoreApplication::processEvents(QEventLoop::AllEvents, 20);
  }
  return condition();
}

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
  job.submit([&, opened] {
    opened.wait();
    first_ran = true;
    return answer_of(1);
  });
  job.submit([] { return answer_of(2); });
  ASSERT_TRUE(wait_for([&] { return !heard.empty(); }));
  gate.set_value();
  ASSERT_TRUE(wait_for([&] { return first_ran.load(); }));
  QElapsedTimer timer;
  timer.start();
  while (timer.elapsed() < 100) QCoreApplication::processEvents();
  EXPECT_EQ(heard, std::vector<double>{2});
  EXPECT_FALSE(job.isBusy());
}

TEST(PlannerJob, WorkThatHasNotBegunWhenNewerComesNeverRuns) {
  PlannerJob job;
  std::promise<void> gate;
  const std::shared_future<void> opened(gate.get_future());
  std::atomic<int> started = 0, ran = 0;
  for (int i = 0; i < 4; ++i) {
    job.submit([&, opened] {
      ++started;
      opened.wait();
      return answer_of(0);
    });
    ASSERT_TRUE(wait_for([&] { return started == i + 1; }));
  }
  for (int i = 0; i < 10; ++i) {
    job.submit([&] {
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
  job.submit([&] {
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

PlanQuery small_query() {
  return {.model = "qwen2.5-0.5b", .cluster = "h100-8", .workload = "ppo-7b-1k"};
}

TEST(Session, AskingShowsTheWinnerWithoutBlocking) {
  Session session;
  QAbstractItemModelTester plans(session.plans(), kFatal), mesh(session.mesh(), kFatal),
      memory(session.memory(), kFatal), phases(session.phases(), kFatal);
  session.ask(small_query());
  EXPECT_TRUE(session.isBusy());
  EXPECT_FALSE(session.plan().has_value());  // it comes with an event
  ASSERT_TRUE(wait_for([&] { return session.plan().has_value(); }));
  EXPECT_EQ(session.selectedRow(), 0);
  EXPECT_GT(session.mesh()->rowCount(), 0);
  EXPECT_GT(session.memory()->rowCount(), 0);
  EXPECT_GT(session.phases()->rowCount(), 0);
}

TEST(Session, SelectingARunnerUpPlansItInFull) {
  Session session;
  session.ask(small_query());
  ASSERT_TRUE(wait_for([&] { return session.plan().has_value(); }));
  ASSERT_GT(session.plans()->rowCount(), 1);
  session.selectRow(1);
  ASSERT_TRUE(wait_for([&] { return session.selectedRow() == 1; }));
  EXPECT_TRUE(session.plans()->row(1).plan.has_value());
  // Behind a comma follow notes.
  const std::string& listed = session.plans()->row(1).summary.placement;
  EXPECT_EQ(describe_placement(*session.plan()), listed.substr(0, listed.find(',')));
  session.selectRow(0);
  EXPECT_EQ(session.selectedRow(), 0);
}

TEST(Session, AnInfeasibleQueryEmptiesTheTableAndSaysWhy) {
  QTemporaryDir folder;
  Session session;
  QString said;
  QObject::connect(&session, &Session::infeasible, [&](const QString& text) { said = text; });
  session.ask(infeasible_query(folder.path().toStdString()));
  ASSERT_TRUE(wait_for([&] { return !said.isEmpty(); }));
  EXPECT_EQ(session.plans()->rowCount(), 0);
  EXPECT_TRUE(said.contains("no feasible plan"));
}

TEST(Session, ASavedPlanOpensEqual) {
  QTemporaryDir folder;
  const QString file = folder.filePath("plan.json");
  Session session;
  EXPECT_FALSE(session.savePlan(file));  // there is none
  session.ask(small_query());
  ASSERT_TRUE(wait_for([&] { return session.plan().has_value(); }));
  ASSERT_TRUE(session.savePlan(file));
  Session other;
  ASSERT_TRUE(other.openPlan(file));
  EXPECT_EQ(*other.plan(), *session.plan());
}

TEST(Session, AFileThatIsNoPlanIsRefusedAndTheOldPlanStays) {
  QTemporaryDir folder;
  const QString file = folder.filePath("plan.json");
  std::ofstream(file.toStdString()) << "{\"tessera_plan\": 2}\n";
  Session session;
  QString said;
  QObject::connect(&session, &Session::problemsFound, [&](const QString& text) { said = text; });
  EXPECT_FALSE(session.openPlan(file));
  EXPECT_TRUE(said.contains("plan.json"));
  EXPECT_FALSE(session.plan().has_value());
}

}  // namespace
}  // namespace tessera::gui

int main(int argc, char** argv) {
  QCoreApplication application(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
