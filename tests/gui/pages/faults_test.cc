// SPDX-License-Identifier: GPL-3.0-or-later
// What throws in an event, or in the background, does not end the window.
#include <gtest/gtest.h>

#include <QTemporaryDir>
#include <fstream>
#include <functional>
#include <new>
#include <stdexcept>
#include <vector>

#include "cost_models/documents/problem.h"
#include "gui/application.h"
#include "gui/document/planner_job.h"
#include "gui/pages/dropped_files.h"
#include "gui/pages/main_window.h"
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
  happens(
      [&] { search.submit([](const std::stop_token&) -> PlanAnswer { throw std::bad_alloc(); }); },
      "not enough memory");
  EXPECT_FALSE(search.isBusy());
  EXPECT_EQ(application->fault(), ExitCode::io) << "an export without a window ends with the first";
  application->tellFaults([](const QString& what) { ADD_FAILURE() << what.toStdString(); });
}

/// Why a file is refused stands on the page Explore, whichever page it was opened from.
TEST(Faults, OfFilesAreSeenFromEveryPage) {
  QTemporaryDir folder;
  const QString broken = folder.filePath("broken.json"), none = folder.filePath("none");
  std::ofstream(broken.toStdString()) << "{";
  MainWindow window;
  window.show();
  const std::vector<std::function<void()>> opened{
      [&] { window.openPlan(broken); }, [&] { window.openProject(broken); },
      [&] { window.openRun(none); }, [&] { openFiles(window, {none}); }};
  for (QWidget* page :
       {static_cast<QWidget*>(&window.understand()), static_cast<QWidget*>(&window.run())}) {
    for (std::size_t i = 0; i < opened.size(); ++i) {
      window.showPage(page);
      window.session().report({});
      ASSERT_FALSE(window.explore().isVisible());
      opened[i]();
      EXPECT_FALSE(window.session().document().file_problems.isEmpty()) << i;
      EXPECT_TRUE(window.explore().isVisible()) << i;
    }
  }
}

}  // namespace
}  // namespace tessera::gui
