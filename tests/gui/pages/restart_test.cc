// SPDX-License-Identifier: GPL-3.0-or-later
// What comes back at the next start, and what was asked for at it.
#include <gtest/gtest.h>

#include <QTemporaryDir>
#include <filesystem>

#include "gui/document/project.h"
#include "gui/layout/kept_layout.h"
#include "gui/pages/main_window.h"
#include "tests/gui/sample_plans.h"
#include "tests/gui/window_flow.h"

namespace tessera::gui {
namespace {

TEST(Window, AProjectIsOpenAgainAtTheNextStart) {
  QTemporaryDir folder;
  const std::filesystem::path memory = folder.filePath("window.json").toStdString();
  const PlanQuery query{"qwen2.5-0.5b", "h100-8", "ppo-7b-1k", 1, 8, {"actor.tp=2"}};
  const QString file = folder.filePath("project.json");
  write_project({.question = query, .pinned = {shared(free_plan())}}, file.toStdString());
  {
    MainWindow window(memory);
    ASSERT_TRUE(window.openProject(file));
    window.close();
  }
  MainWindow again(memory);
  again.askLast({});
  EXPECT_EQ(again.session().document().question, query);
  EXPECT_EQ(again.session().pinned()->count(), 1);
  // One that is gone is none.
  std::filesystem::remove(file.toStdString());
  MainWindow without(memory);
  without.askLast({});
  EXPECT_EQ(without.session().document().question, query);
  EXPECT_EQ(without.session().pinned()->count(), 0);
}

// A size that is asked for is not lost to the last window, which filled its screen.
TEST(Window, ASizeThatIsAskedForIsTheSizeOfAWindow) {
  QWidget window;
  window.setWindowState(Qt::WindowMaximized);
  give_size(window, {640, 480});
  EXPECT_FALSE(window.isMaximized());
  EXPECT_EQ(window.size(), QSize(640, 480));
}

}  // namespace
}  // namespace tessera::gui
