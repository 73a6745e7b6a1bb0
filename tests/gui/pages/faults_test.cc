// SPDX-License-Identifier: GPL-3.0-or-later
// What throws in an event, or in the background, does not end the window.
#include <gtest/gtest.h>

#include <functional>
#include <new>
#include <stdexcept>

#include "cost_models/documents/problem.h"
#include "gui/application.h"
#include "gui/document/planner_job.h"
#include "gui/threads/newest.h"
#include "tests/gui/window_flow.h"

namespace tessera::gui {
namespace {

TEST(Faults, AreToldAndTheWindowGoesOn) {
  auto* application = dynamic_cast<Application*>(qApp);
  ASSERT_NE(application, nullptr);
  QString told;
  application->tellFaults([&](const QString& what) { told = what; });
  QObject context;
  const auto happens = [&](const std::function<void()>& event, const char* what) {
    told.clear();
    QMetaObject::invokeMethod(&context, event, Qt::QueuedConnection);
    EXPECT_TRUE(wait_for([&] { return told.contains(what); })) << told.toStdString();
  };
  EXPECT_EQ(application->fault(), ExitCode::ok);
  happens([] { throw Error(ExitCode::io, "the disk is full"); }, "the disk is full");
  happens([] { throw std::runtime_error("a stranger's file"); }, "a stranger's file");
  happens([] { throw std::bad_alloc(); }, "not enough memory");
  // Of work in the background, which is over then.
  Newest<int> work;
  happens([&] { work.start([]() -> int { throw std::runtime_error("of the work"); }, [](int) {}); },
          "of the work");
  EXPECT_FALSE(work.isBusy());
  PlannerJob search;
  happens([&] { search.submit([]() -> PlanAnswer { throw std::bad_alloc(); }); },
          "not enough memory");
  EXPECT_FALSE(search.isBusy());
  EXPECT_EQ(application->fault(), ExitCode::io) << "an export without a window ends with the first";
  application->tellFaults([](const QString& what) { ADD_FAILURE() << what.toStdString(); });
}

}  // namespace
}  // namespace tessera::gui
