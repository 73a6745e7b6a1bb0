// SPDX-License-Identifier: GPL-3.0-or-later
// Whatever can be looked at is found by a part of its name.
#include <gtest/gtest.h>

#include <QListWidget>
#include <QTabWidget>

#include "gui/pages/command_palette.h"
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

// Grey, and never what Enter does.
TEST(Commands, ThatCannotBeUsedNowSayWhy) {
  MainWindow window;
  window.show();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
  QString text, chosen;
  bool grey = false, open = false;
  with_dialog(&window, [&](QDialog& dialog) {
    auto* line = dialog.findChild<QLineEdit*>();
    auto* list = dialog.findChild<QListWidget*>();
    QTest::keyClicks(line, "stop the run");
    if (list->count() == 1) {
      text = list->item(0)->text();
      grey = !list->item(0)->flags().testFlag(Qt::ItemIsEnabled);
    }
    QTest::keyClick(line, Qt::Key_Return);
    open = dialog.isVisible();
    line->setText("run");
    QTest::keyClick(line, Qt::Key_Down);
    if (list->currentItem() != nullptr) chosen = list->currentItem()->text();
    dialog.reject();
  });
  QTest::keyClick(&window, Qt::Key_P, Qt::ControlModifier);
  EXPECT_EQ(text, "Stop the run    F9    no run is open");
  EXPECT_TRUE(grey);
  EXPECT_TRUE(open) << "Enter does nothing";
  EXPECT_FALSE(chosen.isEmpty());
  EXPECT_FALSE(chosen.contains("no run is open")) << chosen.toStdString();
}

// Whoever cannot be used now has a reason in the palette, but where a menu only says that it has
// nothing.
TEST(Commands, AllHaveAReasonWhileTheyCannotBeUsed) {
  MainWindow window;
  const auto check = [&] {
    for (const QAction* action : commandsOf(*window.menuBar())) {
      EXPECT_EQ(action->isEnabled(), whyNot(*action).isEmpty()) << nameOf(*action).toStdString();
    }
  };
  check();
  ASSERT_TRUE(window.openRun(QString(TESSERA_SOURCE_DIR) + "/tests/gui/data/run", false));
  check();
}

}  // namespace
}  // namespace tessera::gui
