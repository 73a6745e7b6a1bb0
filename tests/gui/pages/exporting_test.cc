// SPDX-License-Identifier: GPL-3.0-or-later
// Exporting changes nothing of what one looks at, and makes the folder that is asked for.
#include <gtest/gtest.h>

#include <QAction>
#include <QComboBox>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QHeaderView>
#include <QImage>
#include <QLineEdit>
#include <QMenuBar>
#include <QScrollArea>
#include <QStandardItemModel>
#include <QStatusBar>
#include <QTabWidget>
#include <QTableView>
#include <QTemporaryDir>
#include <QVBoxLayout>
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
  answer_file_dialog(&window, folder);
  QTest::keyClick(&window, Qt::Key_E, Qt::ControlModifier);
  EXPECT_TRUE(QFileInfo::exists(folder + "/timeline.png"));
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

// What a table scrolls to is in its picture.
TEST(ViewFile, APictureHasAllRowsOfATable) {
  QTemporaryDir folder;
  QStandardItemModel model(60, 2);
  QWidget window;
  auto* panel = new QWidget;
  auto* table = new QTableView;
  table->setModel(&model);
  (new QVBoxLayout(panel))->addWidget(table);
  (new QVBoxLayout(&window))->addWidget(panel);
  window.resize(300, 200);
  window.show();
  const QSize before = panel->size();
  const int rows = table->verticalHeader()->length();
  ASSERT_GT(rows, before.height());
  writePng(*panel, folder.filePath("table.png"));
  EXPECT_GT(QImage(folder.filePath("table.png")).height(), 2 * rows);
  EXPECT_EQ(panel->size(), before);
}

// Of what scrolls the last part has a colour of its own, which is in the picture at two pixels
// each.
TEST(ViewFile, APictureHasWhatAnAreaHidesAndTwoPixelsForEachOfTheView) {
  constexpr QRgb kLast = 0xff13579b;
  QWidget top;  // a view is part of a window
  QWidget view(&top);
  auto* layout = new QVBoxLayout(&view);
  auto* area = new QScrollArea;
  auto* inner = new QWidget;
  inner->setFixedSize(500, 900);
  auto* last = new QWidget(inner);
  last->setGeometry(0, 890, 10, 10);
  last->setAutoFillBackground(true);
  last->setPalette(QPalette(QColor(kLast)));
  area->setWidget(inner);
  layout->addWidget(area);
  view.resize(300, 200);
  top.resize(300, 200);
  top.show();
  ASSERT_TRUE(QTest::qWaitForWindowExposed(&top));
  const QTemporaryDir folder;
  const QString file = folder.filePath("view.png");
  writePng(view, file);
  EXPECT_EQ(view.size(), QSize(300, 200));
  EXPECT_EQ(area->verticalScrollBarPolicy(), Qt::ScrollBarAsNeeded);
  const QImage picture(file);
  EXPECT_GE(picture.width(), 2 * 500);
  EXPECT_GE(picture.height(), 2 * 900);
  int marked = 0;
  for (int y = 0; y < picture.height(); ++y) {
    for (int x = 0; x < picture.width(); ++x) marked += picture.pixel(x, y) == kLast ? 1 : 0;
  }
  EXPECT_EQ(marked, 20 * 20);
}

TEST(ViewFile, APictureThatScrollsNothingIsNoSmallerThanASlideTakes) {
  QWidget top;
  QWidget view(&top);
  view.resize(461, 262);
  const QTemporaryDir folder;
  writePng(view, folder.filePath("view.png"));
  EXPECT_EQ(QImage(folder.filePath("view.png")).size(), QSize(1920, 1080));
  EXPECT_EQ(view.size(), QSize(461, 262));
}

}  // namespace
}  // namespace tessera::gui
