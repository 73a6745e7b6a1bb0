// SPDX-License-Identifier: GPL-3.0-or-later
// Whatever can be looked at is found by a part of its name.
#include <gtest/gtest.h>

#include <QAbstractButton>
#include <QLabel>
#include <QListWidget>
#include <QMap>
#include <QMenuBar>
#include <QTabWidget>

#include "gui/pages/command_palette.h"
#include "gui/pages/main_window.h"
#include "gui/step_views/timeline_canvas.h"
#include "gui/translations/language.h"
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

/// The letters that Alt goes to, of what is in sight.
QMap<QChar, QString> letters_of(const QWidget& page) {
  QMap<QChar, QString> letters;
  const auto take = [&](const QString& text, bool shown) {
    const QKeySequence key = QKeySequence::mnemonic(text);
    if (shown && !key.isEmpty()) letters[QChar(key[0].key())] = text;
  };
  for (const QAbstractButton* button : page.findChildren<QAbstractButton*>()) {
    take(button->text(), button->isVisible());
  }
  for (const QLabel* label : page.findChildren<QLabel*>()) {
    take(label->text(), label->isVisible() && label->buddy() != nullptr);
  }
  return letters;
}

// What a field takes first opens its menu at the second press only.
TEST(Commands, NoFieldTakesAMenusLetter) {
  for (const char* language : {"en", "zh_CN"}) {
    speak(language);
    MainWindow window;
    window.show();
    ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
    QMap<QChar, QString> menus;
    for (const QAction* menu : window.menuBar()->actions()) {
      menus[QChar(QKeySequence::mnemonic(menu->text())[0].key())] = menu->text();
    }
    EXPECT_EQ(menus.size(), 5);
    auto* pages = qobject_cast<QTabWidget*>(window.centralWidget());
    for (QTabWidget* tabs : window.findChildren<QTabWidget*>()) {
      for (int tab = 0; tab < tabs->count(); ++tab) {
        for (int page = 0; page < pages->count(); ++page) {
          if (pages->widget(page)->isAncestorOf(tabs)) pages->setCurrentIndex(page);
        }
        tabs->setCurrentIndex(tab);
        const auto letters = letters_of(*pages);
        for (auto at = letters.begin(); at != letters.end(); ++at) {
          EXPECT_FALSE(menus.contains(at.key())) << at.value().toStdString();
        }
      }
    }
  }
  speak("en");
}

// W S A D are the timeline's at once.
TEST(Commands, GoingToAPictureGivesItTheKeys) {
  MainWindow window;
  window.show();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
  QAction* timeline = nullptr;
  for (QAction* action : commandsOf(*window.menuBar())) {
    if (action->text() == "Timeline") timeline = action;
  }
  ASSERT_NE(timeline, nullptr);
  timeline->trigger();
  EXPECT_NE(qobject_cast<TimelineCanvas*>(QApplication::focusWidget()), nullptr);
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
