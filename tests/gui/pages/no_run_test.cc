// SPDX-License-Identifier: GPL-3.0-or-later
// The page of a run says what to do while none is open.
#include "gui/run_views/no_run.h"

#include <gtest/gtest.h>

#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTemporaryDir>
#include <filesystem>

#include "gui/pages/main_window.h"
#include "gui/remote/remote_runs.h"
#include "gui/run_views/remote_dialog.h"
#include "tests/gui/window_flow.h"

namespace tessera::gui {
namespace {

const QString kRun = QString(TESSERA_SOURCE_DIR) + "/tests/gui/data/run";

// verl leaves its numbers alone: nothing empty stands beside them.
TEST(NoRun, OfNumbersAloneNoRanksOrReshardsAreShown) {
  QTemporaryDir folder;
  QFile::copy(kRun + "/metrics.jsonl", folder.filePath("all.jsonl"));
  QFile all(folder.filePath("all.jsonl")), some(folder.filePath("metrics.jsonl"));
  ASSERT_TRUE(all.open(QIODevice::ReadOnly) && some.open(QIODevice::WriteOnly));
  some.write(all.readAll().replace("\"reshard/", "\"other/"));
  some.close();
  MainWindow window;
  window.resize(1280, 720);
  window.show();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
  const auto shown = [&](const char* name) {
    return window.run().findChild<QWidget*>(name)->isVisible();
  };
  ASSERT_TRUE(window.openRun(folder.path(), false));
  const QString state = window.session().run()->summary().text;
  EXPECT_TRUE(state.endsWith(" steps were measured; its ranks left nothing here"))
      << state.toStdString();
  EXPECT_FALSE(shown("ranks") || shown("reshard_rate") || shown("reshard_bytes"));
  EXPECT_TRUE(shown("reward") && shown("kl") && shown("throughput") && shown("step_phases"));
  const auto* phases = window.run().findChild<QWidget*>("step_phases");
  const auto* throughput = window.run().findChild<QWidget*>("throughput");
  EXPECT_EQ(phases->geometry().top(), throughput->geometry().top()) << "it takes their room";
  ASSERT_TRUE(window.openRun(kRun, false));
  for (const char* name : {"ranks", "reshard_rate", "reshard_bytes"}) {
    EXPECT_TRUE(shown(name)) << name;
  }
}

TEST(NoRun, OffersWhatCanBeDoneUntilARunIsOpen) {
  MainWindow window;
  window.show();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
  QTest::keyClick(&window, Qt::Key_3, Qt::ControlModifier);
  auto* panel = window.findChild<NoRun*>();
  ASSERT_NE(panel, nullptr);
  ASSERT_TRUE(panel->isVisible());
  const auto button = [&](const QString& text) {
    for (QPushButton* each : panel->findChildren<QPushButton*>()) {
      if (each->text() == text) return each;
    }
    ADD_FAILURE() << text.toStdString();
    return static_cast<QPushButton*>(nullptr);
  };
  // Without a plan there is nothing to start.
  EXPECT_FALSE(button("Start this plan...")->isEnabled());
  ASSERT_TRUE(window.openPlan(kRun + "/plan.json"));
  EXPECT_TRUE(button("Start this plan...")->isEnabled());
  bool asked = false;
  with_dialog(&window, [&](QDialog& dialog) {
    asked = qobject_cast<RemoteDialog*>(&dialog) != nullptr;
    dialog.reject();
  });
  QTest::mouseClick(button("Follow a remote run..."), Qt::LeftButton);
  EXPECT_TRUE(asked);
  answer_file_dialog(&window, kRun);
  QTest::mouseClick(button("Open a run's folder..."), Qt::LeftButton);
  EXPECT_TRUE(wait_for([&] { return !panel->isVisible(); }));
  EXPECT_EQ(window.session().run()->folder().string(), kRun.toStdString());
}

TEST(NoRun, OffersTheRunThatWasFollowedWhenTheWindowWasClosed) {
  QTemporaryDir folder;
  const std::filesystem::path memory = folder.filePath("window.json").toStdString();
  const auto again = [](MainWindow& window) -> QPushButton* {
    window.show();
    window.showPage(&window.run());
    for (QPushButton* each : window.findChild<NoRun*>()->findChildren<QPushButton*>()) {
      if (each->text() == "Follow the last run again" && each->isVisible()) return each;
    }
    return nullptr;
  };
  {
    MainWindow window(memory);
    EXPECT_EQ(again(window), nullptr);
    ASSERT_TRUE(window.openRun(kRun, false));
    window.close();
  }
  MainWindow window(memory);
  ASSERT_NE(again(window), nullptr);
  QTest::mouseClick(again(window), Qt::LeftButton);
  EXPECT_EQ(window.session().run()->folder().string(), kRun.toStdString());
}

// From any page, by its key: how far it is stands on this one.
TEST(NoRun, TheQuickstartComesToThePageThatTellsOfIt) {
  QTemporaryDir folder;
  MainWindow window;
  window.show();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
  ASSERT_TRUE(window.explore().isVisible());
  answer_file_dialog(&window, folder.path());
  QTest::keyClick(&window, Qt::Key_F6, Qt::ShiftModifier);
  EXPECT_TRUE(window.run().isVisible());
  // Without the program it is refused; else it ends with its key.
  if (window.run().quickstart()->text().startsWith("Cancel")) window.run().quickstart()->trigger();
}

// As long as it must be.
TEST(NoRun, AFolderBelowTheOneOfTheStartIsNamedFromThereOn) {
  const std::filesystem::path here = std::filesystem::current_path();
  EXPECT_EQ(placeText(here / "runs/monday"), "runs/monday");
  for (const std::filesystem::path& other : {here, here.parent_path(), here.parent_path() / "x"}) {
    EXPECT_EQ(placeText(other).toStdString(), other.string());
  }
}

// Its page would be empty, beside a prediction that has nothing to do with it.
TEST(NoRun, AFolderOfSomethingElseIsNotFollowed) {
  QTemporaryDir folder;
  QFile other(folder.filePath("readme.txt"));
  ASSERT_TRUE(other.open(QIODevice::WriteOnly));
  MainWindow window;
  window.show();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
  answer_file_dialog(&window, folder.path());
  QTest::keyClick(&window, Qt::Key_R, Qt::ControlModifier);
  EXPECT_TRUE(window.session().run()->folder().empty());
  EXPECT_TRUE(window.session().document().file_problems.contains(folder.path() + " is no run"))
      << window.session().document().file_problems.toStdString();
  EXPECT_TRUE(window.explore().isVisible()) << "where it is told";
}

}  // namespace
}  // namespace tessera::gui
