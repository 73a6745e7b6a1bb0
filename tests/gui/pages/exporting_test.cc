// SPDX-License-Identifier: GPL-3.0-or-later
// Exporting changes nothing of what one looks at, and makes the folder that is asked for.
#include <gtest/gtest.h>

#include <QAbstractButton>
#include <QAction>
#include <QComboBox>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QHeaderView>
#include <QImage>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenuBar>
#include <QStatusBar>
#include <QTabWidget>
#include <QTableView>
#include <QTemporaryDir>
#include <map>

#include "cost_models/documents/problem.h"
#include "gui/document/text.h"
#include "gui/export/view_file.h"
#include "gui/pages/command_palette.h"
#include "gui/pages/export_views.h"
#include "gui/pages/main_window.h"
#include "gui/translations/language.h"
#include "gui/views/message_bar.h"
#include "tests/gui/explore_flow.h"
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
  with_dialog(&window, [&](QDialog& dialog) {
    named<QLineEdit>(dialog, "Folder")->setText(folder);
    dialog.accept();
  });
  QTest::keyClick(&window, Qt::Key_E, Qt::ControlModifier);
  EXPECT_TRUE(QFileInfo::exists(folder + "/timeline.png"));
  EXPECT_FALSE(QFileInfo::exists(folder + "/timeline.csv")) << "nobody asked for it";
}

// What was chosen, as what was chosen; the page in front stays, and how many is said.
TEST(Exporting, AsksForViewsAndFormats) {
  MainWindow window;
  window.resize(1280, 800);
  window.show();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
  ASSERT_TRUE(window.openPlan(kData + "/run/plan.json"));
  const auto before = in_front(window);
  const QTemporaryDir folder;
  const auto button = [](QDialog& dialog, const QString& text) {
    for (QAbstractButton* each : dialog.findChildren<QAbstractButton*>()) {
      if (each->text() == text) return each;
    }
    return static_cast<QAbstractButton*>(nullptr);
  };
  bool without_folder = true, without_views = true;
  int changes = 0, seen = 0;
  QObject::connect(window.understand().findChild<QTabWidget*>(), &QTabWidget::currentChanged, [&] {
    ++changes;
    const auto* still = window.findChild<QLabel*>("still");
    if (still == nullptr || !still->isVisible()) ++seen;
  });
  with_dialog(&window, [&](QDialog& dialog) {
    auto* list = named<QListWidget>(dialog, "Pages and views");
    without_folder = button(dialog, "&Export")->isEnabled();
    named<QLineEdit>(dialog, "Folder")->setText(folder.path());
    EXPECT_TRUE(button(dialog, "&Export")->isEnabled());
    button(dialog, "&None")->click();
    without_views = button(dialog, "&Export")->isEnabled();
    for (int row = 0; row < list->count(); ++row) {
      QListWidgetItem& item = *list->item(row);
      const bool wanted = item.text().startsWith("timeline") || item.text().startsWith("mesh") ||
                          item.text().startsWith("reshard:");
      if (wanted) item.setCheckState(Qt::Checked);
    }
    button(dialog, "&Pictures (png)")->click();
    button(dialog, "&Tables (csv)")->click();
    button(dialog, "&Export")->click();
    if (dialog.isVisible()) dialog.reject();
  });
  QTest::keyClick(&window, Qt::Key_E, Qt::ControlModifier);
  EXPECT_FALSE(without_folder);
  EXPECT_FALSE(without_views);
  EXPECT_GT(changes, 0);
  EXPECT_EQ(seen, 0);
  EXPECT_EQ(window.findChild<QLabel*>("still"), nullptr);
  EXPECT_EQ(in_front(window), before);
  EXPECT_EQ(QDir(folder.path()).entryList(QDir::Files),
            (QStringList{"reshard.csv", "timeline.csv"}));
  EXPECT_EQ(window.statusBar()->currentMessage(), "2 files written into " + folder.path());
}

TEST(Exporting, EndsWhereNobodyWaitsForTheRest) {
  MainWindow window;
  window.show();
  ASSERT_TRUE(window.openPlan(kData + "/run/plan.json"));
  const QTemporaryDir folder;
  QStringList begun;
  const auto twice = [&](const QString& name, int done, int all) {
    EXPECT_EQ(done, begun.size());
    EXPECT_GT(all, 10);
    begun << name;
    return begun.size() < 3;
  };
  const QStringList written = exportViews(window, folder.path(), {{.png = true}, {}}, twice);
  EXPECT_EQ(begun.size(), 3);
  EXPECT_EQ(written.size(), 2);
  EXPECT_EQ(QDir(folder.path()).entryList(QDir::Files).size(), 2);
}

// As large as what they show, whatever room the window has for it.
TEST(Exporting, APictureOfATableHasAllOfIt) {
  MainWindow window;
  window.resize(1280, 720);
  window.show();
  ASSERT_TRUE(window.openRun(kData + "/run", false));
  const QTemporaryDir folder;
  window.showPage(&window.run());
  for (const char* name : {"comparison", "rules"}) {
    auto* view = window.run().findChild<QWidget*>(name);
    auto* table = qobject_cast<QTableView*>(view);
    if (table == nullptr) table = view->findChild<QTableView*>();
    ASSERT_NE(table, nullptr) << name;
    const QSize before = view->size();
    const QString file = folder.filePath(name);
    writePng(*view, file);
    EXPECT_EQ(view->size(), before) << name;
    EXPECT_EQ(table->verticalScrollBarPolicy(), Qt::ScrollBarAlwaysOn) << name;
    const QImage picture(file);
    EXPECT_GE(picture.height(), 2 * table->verticalHeader()->length()) << name;
    int wide = 0;
    for (int column = 0; column < table->model()->columnCount(); ++column) {
      if (table->isColumnHidden(column)) continue;
      wide += static_cast<QAbstractItemView*>(table)->sizeHintForColumn(column);
    }
    EXPECT_GE(picture.width(), 2 * wide) << name;
  }
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

class OneView : public testing::Test {
 protected:
  void SetUp() override {
    window.resize(1280, 800);
    window.show();
    ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
    ASSERT_TRUE(window.openPlan(kData + "/run/plan.json"));
  }
  /// By the key, into a file of that name.
  QString exported(const QString& name) {
    const QString file = folder.filePath(name);
    answer_file_dialog(&window, file);
    window.activateWindow();
    EXPECT_TRUE(QTest::qWaitForWindowActive(&window));
    QCoreApplication::processEvents();
    QTest::keyClick(&window, Qt::Key_E, Qt::ControlModifier | Qt::AltModifier);
    EXPECT_TRUE(wait_for([&] { return !window.writing().isBusy(); }));
    return file;
  }
  static QByteArray bytes_of(const QString& file) {
    QFile in(file);
    EXPECT_TRUE(in.open(QIODevice::ReadOnly)) << file.toStdString();
    return in.readAll();
  }
  QString told() { return window.session().document().file_problems; }

  MainWindow window;
  QTemporaryDir folder;
};

TEST_F(OneView, IsWrittenAsTheExportOfAllWritesIt) {
  window.showPage(&window.understand());
  for (const char* name : {"one.png", "one.svg", "one.csv", "one.json"}) exported(name);
  EXPECT_TRUE(window.statusBar()->currentMessage().contains("one.json"))
      << window.statusBar()->currentMessage().toStdString();
  const QString all = folder.filePath("all");
  exportViews(window, all, {.png = true, .svg = true, .csv = true, .json = true});
  for (const char* end : {"csv", "json"}) {
    const QByteArray one = bytes_of(folder.filePath(QString("one.") + end));
    EXPECT_FALSE(one.isEmpty());
    EXPECT_EQ(one, bytes_of(all + "/timeline." + end));
  }
  const QImage picture(folder.filePath("one.png"));
  EXPECT_EQ(picture.size(), QImage(all + "/timeline.png").size());
  EXPECT_EQ(picture, QImage(all + "/timeline.png"));
  EXPECT_TRUE(bytes_of(folder.filePath("one.svg")).contains("<svg"));
}

// Whoever looks at a page stays there.
TEST_F(OneView, ThatCannotBeWrittenIsToldOnItsPage) {
  window.showPage(&window.understand());
  exported("one.xlsx");
  EXPECT_TRUE(told().contains("one.xlsx: this view is written as")) << told().toStdString();
  EXPECT_TRUE(window.understand().isVisible());
  EXPECT_EQ(window.statusBar()->currentMessage(), told());
}

// What was typed is there for another try.
TEST_F(OneView, AJobThatCannotBeWrittenIsToldInItsDialog) {
  window.showPage(&window.understand());
  bool open = false, quiet = false;
  QString typed, why;
  with_dialog(&window, [&](QDialog& dialog) {
    auto* name = named<QLineEdit>(dialog, "Folder");
    name->setText("/proc/job");
    QTest::keyClick(name, Qt::Key_Return);
    open = dialog.isVisible();
    typed = name->text();
    auto* fault = named<MessageBar>(dialog, "Why nothing was written");
    if (fault != nullptr) why = fault->text();
    name->setText(folder.filePath("job"));
    quiet = fault != nullptr && fault->text().isEmpty();
    QTest::keyClick(name, Qt::Key_Return);
  });
  QTest::keyClick(&window, Qt::Key_J, Qt::ControlModifier);
  EXPECT_TRUE(open);
  EXPECT_EQ(typed, "/proc/job");
  EXPECT_TRUE(why.contains("/proc/job")) << why.toStdString();
  EXPECT_TRUE(quiet) << "of another folder nothing is known yet";
  EXPECT_TRUE(window.understand().isVisible());
  EXPECT_FALSE(QDir(folder.filePath("job")).isEmpty());
}

TEST_F(OneView, IsTheOneThatTheKeysAreFor) {
  QAction* action = nullptr;
  for (QAction* one : commandsOf(*window.menuBar())) {
    if (one->shortcut() == QKeySequence("Ctrl+Alt+E")) action = one;
  }
  ASSERT_NE(action, nullptr);
  window.explore().form()->findChild<QComboBox*>()->setFocus();
  QCoreApplication::processEvents();
  EXPECT_FALSE(action->isEnabled());
  EXPECT_TRUE(whyNot(*action).contains("none of the views")) << whyNot(*action).toStdString();
  auto* plans = window.explore().findChild<QWidget*>("plans")->findChild<QTableView*>();
  QTest::mouseClick(plans->viewport(), Qt::LeftButton);
  QCoreApplication::processEvents();
  EXPECT_TRUE(action->isEnabled());
  const QString all = folder.filePath("all");
  exported("mine.csv");
  exportViews(window, all, {.png = false, .csv = true});
  EXPECT_EQ(bytes_of(folder.filePath("mine.csv")), bytes_of(all + "/plans.csv"));
}

TEST_F(OneView, SaysWhatItIsNotWrittenAs) {
  window.showPage(&window.understand());
  QFile::remove(exported("one.pdf"));
  EXPECT_TRUE(told().contains("png, svg, csv, json, not in \"pdf\"")) << told().toStdString();
  window.showPage(&window.understand());
  exported("no folder/one.csv");
  EXPECT_TRUE(told().contains("one.csv")) << told().toStdString();
}

// Nothing is pinned: there is no table of it.
TEST_F(OneView, SaysThatItShowsNothing) {
  auto* view = window.explore().findChild<QWidget*>("pinned");
  ASSERT_NE(view, nullptr);
  for (QTabWidget* tabs : window.explore().findChildren<QTabWidget*>()) {
    for (int tab = 0; tab < tabs->count(); ++tab) {
      if (tabs->widget(tab) == view || tabs->widget(tab)->isAncestorOf(view)) {
        tabs->setCurrentIndex(tab);
      }
    }
  }
  QWidget* table = view->findChild<QTableView*>();
  ASSERT_TRUE(view->isVisible());
  (table != nullptr ? table : view)->setFocus();
  const QString file = exported("none.csv");
  EXPECT_FALSE(QFileInfo::exists(file));
  EXPECT_TRUE(told().contains("shows nothing")) << told().toStdString();
}

}  // namespace
}  // namespace tessera::gui
