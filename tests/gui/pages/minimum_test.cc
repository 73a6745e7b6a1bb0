// SPDX-License-Identifier: GPL-3.0-or-later
// The window can be made as small as a small screen leaves room for, whatever it has to say.
#include <gtest/gtest.h>

#include <QTabWidget>

#include "gui/translations/language.h"
#include "gui/views/message_bar.h"
#include "tests/gui/explore_flow.h"

namespace tessera::gui {
namespace {

// A screen of 1280 x 720 less a panel of 40 pixels, a title of 26 and a frame of 4.
constexpr QSize kRoom{1272, 650};

class Minimum : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!languages().contains(GetParam())) GTEST_SKIP() << "built without lrelease";
    speak(GetParam());
  }
  void TearDown() override { speak("en"); }
};

TEST_P(Minimum, FitsASmallScreenOnEveryPageWithAllThatItMaySay) {
  MainWindow window;
  window.resize(1280, 720);
  window.show();
  window.session().ask({.model = "qwen2.5-7b",
                        .cluster = "h100-64",
                        .workload = "ppo-7b-1k",
                        .nodes = 2,
                        .fixed = {"placement=actor+reference | critic", "actor.tp=4"}});
  ASSERT_TRUE(wait_for([&] { return window.session().document().valid(); }));
  window.session().pin();
  ASSERT_TRUE(window.openRun(QString(TESSERA_SOURCE_DIR) + "/tests/gui/data/run", false));
  window.session().report(QString("what is wrong with a file ").repeated(9) + "\nand more");
  for (QWidget* page :
       {static_cast<QWidget*>(&window.explore()), static_cast<QWidget*>(&window.understand()),
        static_cast<QWidget*>(&window.run())}) {
    window.showPage(page);
    for (MessageBar* bar : page->findChildren<MessageBar*>()) {
      const QString line = bar->text().isEmpty() ? QString("word ").repeated(80) : bar->text();
      bar->say(line, Tone::warning, QString("a line of details\n").repeated(9));
      for (QPushButton* button : bar->findChildren<QPushButton*>()) {
        if (button->isCheckable()) button->setChecked(true);
      }
    }
    QList<QTabWidget*> all = page->findChildren<QTabWidget*>();
    for (QTabWidget* tabs : all) {
      for (int tab = 0; tab < tabs->count(); ++tab) {
        tabs->setCurrentIndex(tab);
        ASSERT_TRUE(wait_for([&] { return !window.session().isWorking(); }));
        QCoreApplication::processEvents();
      }
      tabs->setCurrentIndex(0);
    }
    QCoreApplication::processEvents();
    const QSize least = window.minimumSizeHint();
    EXPECT_LE(least.width(), kRoom.width());
    EXPECT_LE(least.height(), kRoom.height());
  }
}

INSTANTIATE_TEST_SUITE_P(Languages, Minimum, ::testing::Values("en", "zh_CN"));

}  // namespace
}  // namespace tessera::gui
