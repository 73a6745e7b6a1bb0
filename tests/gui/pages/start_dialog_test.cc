// SPDX-License-Identifier: GPL-3.0-or-later
// The form of a run that is to be started, once more.
#include <gtest/gtest.h>

#include <QComboBox>
#include <QDir>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <functional>

#include "tests/gui/explore_flow.h"

namespace tessera::gui {
namespace {

// What was typed is there again: a run that was refused is started once its fault is mended.
TEST_F(Explore, ARunThatDidNotStartIsAskedForWithWhatWasTyped) {
  ask(small_query());
  const QString there = folder.filePath("refused");
  const auto asks = [&](const std::function<void(QDialog&)>& look) {
    auto* once = new QObject(&window);
    with_dialog(once, [&](QDialog& dialog) {
      look(dialog);
      QTest::keyClick(&dialog, Qt::Key_Escape);
    });
    window.activateWindow();
    ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
    QTest::keyClick(&window, Qt::Key_F6);
    delete once;
  };
  asks([&](QDialog& dialog) {
    named<QComboBox>(dialog, "Run file")->setCurrentText("mine.yaml");
    named<QPlainTextEdit>(dialog, "Settings of the run")->setPlainText("a=1\nb=[x, y]");
    named<QLineEdit>(dialog, "Folder of the run")->setText(there);
  });
  bool looked = false;
  asks([&](QDialog& dialog) {
    looked = true;
    EXPECT_EQ(named<QComboBox>(dialog, "Run file")->currentText(), "mine.yaml");
    EXPECT_EQ(named<QPlainTextEdit>(dialog, "Settings of the run")->toPlainText(), "a=1\nb=[x, y]");
    const QString folder = named<QLineEdit>(dialog, "Folder of the run")->text();
    EXPECT_EQ(QDir::cleanPath(QDir().absoluteFilePath(folder)), there);
  });
  EXPECT_TRUE(looked);
}

}  // namespace
}  // namespace tessera::gui
