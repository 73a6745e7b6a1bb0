// SPDX-License-Identifier: GPL-3.0-or-later
// Whatever can be looked at is found by a part of its name.
#include <gtest/gtest.h>

#include <QTabWidget>

#include "gui/pages/main_window.h"
#include "tests/gui/window_flow.h"

namespace tessera::gui {
namespace {

TEST(Commands, EveryTabIsACommand) {
  MainWindow window;
  window.show();
  ASSERT_TRUE(window.openRun(QString(TESSERA_SOURCE_DIR) + "/tests/gui/data/run", false));
  ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
  for (QTabWidget* tabs : window.centralWidget()->findChildren<QTabWidget*>()) {
    for (int tab = 0; tab < tabs->count(); ++tab) {
      with_dialog(&window, [&](QDialog& dialog) {
        auto* line = dialog.findChild<QLineEdit*>();
        QTest::keyClicks(line, tabs->tabText(tab) + " go to");
        QTest::keyClick(line, Qt::Key_Return);
      });
      QTest::keyClick(&window, Qt::Key_P, Qt::ControlModifier);
      EXPECT_EQ(tabs->currentIndex(), tab);
      EXPECT_TRUE(tabs->isVisible()) << tabs->tabText(tab).toStdString();
      window.activateWindow();
      ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
    }
  }
}

}  // namespace
}  // namespace tessera::gui
