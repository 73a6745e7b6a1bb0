// SPDX-License-Identifier: GPL-3.0-or-later
// Exporting changes nothing of what one looks at, and makes the folder that is asked for.
#include <gtest/gtest.h>

#include <QDir>
#include <QFileInfo>
#include <QTabWidget>
#include <QTemporaryDir>
#include <map>

#include "cost_models/documents/problem.h"
#include "gui/document/text.h"
#include "gui/pages/export_views.h"
#include "gui/pages/main_window.h"
#include "gui/translations/language.h"
#include "tests/gui/window_flow.h"

namespace tessera::gui {
namespace {

const QString kData = QString(TESSERA_SOURCE_DIR) + "/tests/gui/data";

std::map<const QTabWidget*, int> in_front(const MainWindow& window) {
  std::map<const QTabWidget*, int> shown;
  for (const QTabWidget* tabs : window.findChildren<QTabWidget*>()) {
    shown[tabs] = tabs->currentIndex();
  }
  return shown;
}

TEST(Exporting, LeavesInFrontWhatWasThere) {
  MainWindow window;
  window.resize(1280, 800);
  window.show();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
  ASSERT_TRUE(window.openPlan(kData + "/run/plan.json"));
  // The second page with its second tab, and others in front of their pages.
  for (QTabWidget* tabs : window.findChildren<QTabWidget*>()) {
    if (tabs->count() > 1) tabs->setCurrentIndex(1);
  }
  const auto before = in_front(window);
  ASSERT_GT(before.size(), 2u);
  const QTemporaryDir folder;
  EXPECT_FALSE(exportViews(window, folder.path(), {.csv = true}).isEmpty());
  EXPECT_EQ(in_front(window), before);
}

TEST(Exporting, MakesAFolderThatIsNotThere) {
  MainWindow window;
  window.show();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
  ASSERT_TRUE(window.openPlan(kData + "/run/plan.json"));
  const QTemporaryDir above;
  const QString folder = above.filePath("pictures/of today");
  answer_file_dialog(&window, folder);
  QTest::keyClick(&window, Qt::Key_E, Qt::ControlModifier);
  EXPECT_TRUE(QFileInfo::exists(folder + "/timeline.png"));
}

TEST(Exporting, SaysInTheLanguageWhatCannotBeWritten) {
  if (!languages().contains("zh_CN")) GTEST_SKIP() << "built without lrelease";
  speak("zh_CN");
  QString why;
  try {
    MainWindow window;
    exportViews(window, "/proc/pictures");
  } catch (const Error& error) {
    why = problemsText(error.problems());
  }
  speak("en");
  EXPECT_EQ(why, QString::fromUtf8("/proc/pictures：无法创建该文件夹"));
}

}  // namespace
}  // namespace tessera::gui
