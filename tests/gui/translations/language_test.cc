// SPDX-License-Identifier: GPL-3.0-or-later
// The window in another language: which one is chosen, and that nothing stays in English.
#include "gui/translations/language.h"

#include <gtest/gtest.h>

#include <QAbstractButton>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QRegularExpression>
#include <QTabBar>
#include <QTabWidget>
#include <algorithm>
#include <utility>

#include "gui/document/words.h"
#include "gui/kept/workspace.h"
#include "gui/models/colours.h"
#include "gui/step/memory_text.h"
#include "gui/translations/font_of_language.h"
#include "gui/views/chart.h"
#include "gui/views/message_bar.h"
#include "tests/gui/explore_flow.h"

namespace tessera::gui {
namespace {

bool hasChinese(const QString& text) {
  return std::any_of(text.begin(), text.end(),
                     [](QChar c) { return c.script() == QChar::Script_Han; });
}

class Languages : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!languages().contains("zh_CN")) GTEST_SKIP() << "built without lrelease";
  }
  void TearDown() override { speak("en"); }
};

TEST_F(Languages, TheSystemsUserReadsTheOneOfTheSameScript) {
  EXPECT_EQ(languageOf(QLocale("zh_CN")), "zh_CN");
  EXPECT_EQ(languageOf(QLocale("zh_Hans_SG")), "zh_CN");
  EXPECT_EQ(languageOf(QLocale("zh_TW")), "en");
  EXPECT_EQ(languageOf(QLocale("de_DE")), "en");
  EXPECT_EQ(languageOf(QLocale("en_GB")), "en");
  EXPECT_EQ(languageOf(QLocale::c()), "en");
  EXPECT_TRUE(hasChinese(nameOfLanguage("zh_CN")));
}

TEST_F(Languages, ClassesOfMemoryKeepTheirColours) {
  std::vector<QColor> english;
  for (std::size_t at = 0; at < memory_classes({}).size(); ++at) english.push_back(classColour(at));
  speak("zh_CN");
  for (std::size_t at = 0; at < english.size(); ++at) {
    EXPECT_EQ(classColour(at), english[at]) << memory_classes({})[at].first;
    EXPECT_NE(english[at], colourOfMemory("none")) << memory_classes({})[at].first;
  }
}

/// Several English words in a row, of which none is a name; operations of a step have names, by
/// which they are searched.
bool isEnglish(const QString& text) {
  static const QStringList operations{"receive weights", "reduce gradients", "gather parameters"};
  if (operations.contains(text)) return false;
  static const QRegularExpression words("\\b[A-Za-z]{2,} [a-z]{2,}\\b");
  return words.match(text).hasMatch();
}

/// Prose among other words: words that no name of the field has.
bool hasProse(const QString& text) {
  static const QRegularExpression tags("<[^>]*>");
  static const QRegularExpression words(
      "\\b(the|of|is|are|and|with|than|more|nothing|from|that|which|its|others?)\\b");
  return words.match(QString(text).remove(tags)).hasMatch();
}

void addCells(const QAbstractItemModel& model, QStringList& all) {
  constexpr int kMostRows = 40;
  for (int column = 0; column < model.columnCount(); ++column) {
    all << model.headerData(column, Qt::Horizontal).toString();
    for (int row = 0; row < std::min(kMostRows, model.rowCount()); ++row) {
      const QModelIndex cell = model.index(row, column);
      all << cell.data().toString() << cell.data(Qt::ToolTipRole).toString();
    }
  }
  for (int row = 0; row < std::min(kMostRows, model.rowCount()); ++row) {
    all << model.headerData(row, Qt::Vertical).toString();
  }
}

void addChart(QCustomPlot& chart, QStringList& all) {
  all << chart.xAxis->label() << chart.yAxis->label();
  for (int entry = 0; entry < chart.plottableCount(); ++entry) {
    all << chart.plottable(entry)->name();
  }
  for (int item = 0; item < chart.itemCount(); ++item) {
    if (const auto* text = qobject_cast<QCPItemText*>(chart.item(item))) all << text->text();
  }
}

/// Whatever the window says of itself, in the order of its parts.
QStringList said_by(QWidget& window) {
  QStringList all;
  for (QWidget* widget : window.findChildren<QWidget*>()) {
    all << widget->accessibleName() << widget->toolTip();
    if (auto* label = qobject_cast<QLabel*>(widget)) all << label->text();
    if (auto* button = qobject_cast<QAbstractButton*>(widget)) all << button->text();
    if (auto* line = qobject_cast<QLineEdit*>(widget)) all << line->placeholderText();
    if (auto* tabs = qobject_cast<QTabBar*>(widget)) {
      for (int tab = 0; tab < tabs->count(); ++tab) all << tabs->tabText(tab);
    }
    if (auto* box = qobject_cast<QComboBox*>(widget)) {
      for (int item = 0; item < box->count(); ++item) all << box->itemText(item);
    }
    if (auto* table = qobject_cast<QTableView*>(widget)) {
      addCells(*table->model(), all);
    }
    if (auto* chart = qobject_cast<QCustomPlot*>(widget)) addChart(*chart, all);
    if (auto* bar = qobject_cast<MessageBar*>(widget)) all << bar->text();
    for (const QAction* action : widget->actions()) all << action->text() << action->toolTip();
  }
  for (const QMenu* menu : window.findChildren<QMenu*>()) {
    for (const QAction* action : menu->actions()) all << action->text();
  }
  return all;
}

QStringList said_in(const QString& language) {
  speak(language);
  MainWindow window;
  window.resize(1500, 950);
  window.show();
  window.session().ask(small_query());
  EXPECT_TRUE(wait_for([&] { return !window.session().isBusy(); }));
  EXPECT_TRUE(window.openRun(QString(TESSERA_SOURCE_DIR) + "/tests/gui/data/run", false));
  window.session().pin();
  for (QWidget* page :
       {static_cast<QWidget*>(&window.explore()), static_cast<QWidget*>(&window.understand()),
        static_cast<QWidget*>(&window.run())}) {
    window.showPage(page);
    for (QTabWidget* tabs : page->findChildren<QTabWidget*>()) {
      for (int tab = 0; tab < tabs->count(); ++tab) {
        tabs->setCurrentIndex(tab);
        QCoreApplication::processEvents();
        EXPECT_TRUE(wait_for([&] { return !window.session().isWorking(); }));
      }
    }
  }
  return said_by(window);
}

TEST_F(Languages, NothingOfTheWindowStaysInEnglish) {
  const QStringList english = said_in("en"), chinese = said_in("zh_CN");
  EXPECT_GT(std::count_if(english.begin(), english.end(), isEnglish), 100);
  EXPECT_TRUE(std::none_of(english.begin(), english.end(), hasChinese) ||
              english.contains(nameOfLanguage("zh_CN")));
  for (const QString& text : chinese) {
    EXPECT_TRUE(hasChinese(text) || !isEnglish(text)) << text.toStdString();
    EXPECT_FALSE(hasProse(text)) << text.toStdString();
  }
}

// Classes of memory are single words, which no prose tells.
TEST_F(Languages, TheClassesOfMemoryInALegendAreTranslated) {
  speak("zh_CN");
  MainWindow window;
  window.session().ask(small_query());
  EXPECT_TRUE(wait_for([&] { return window.session().document().valid(); }));
  EXPECT_FALSE(window.session().memory()->series().empty());
  for (const MemoryModel::Series& series : window.session().memory()->series()) {
    EXPECT_TRUE(hasChinese(series.name)) << series.name.toStdString();
  }
  EXPECT_EQ(window.session().plans()->index(0, PlanTableModel::Placement).data().toString(),
            Words::tr("colocated"));
  // The form says it in the window's language and asks it in the planner's.
  PlanQuery fixed = small_query();
  fixed.fixed = {"placement=colocated"};
  window.session().ask(fixed);
  EXPECT_EQ(window.explore().form()->query().fixed, fixed.fixed);
}

// Who knows a command from an English page finds it, too.
TEST_F(Languages, CommandsAreFoundByTheirEnglishNames) {
  speak("zh_CN");
  EXPECT_EQ(englishOf(Words::tr("&Export views...")), "&Export views...");
  EXPECT_EQ(englishOf("?!"), "?!");
  MainWindow window;
  window.show();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
  const auto found = [&](const QString& typed) {
    QStringList names;
    with_dialog(&window, [&](QDialog& dialog) {
      dialog.findChild<QLineEdit*>()->setText(typed);
      auto* list = dialog.findChild<QListWidget*>();
      for (int row = 0; row < list->count(); ++row) names << list->item(row)->text();
      dialog.reject();
    });
    window.activateWindow();
    EXPECT_TRUE(QTest::qWaitForWindowActive(&window));
    QTest::keyClick(&window, Qt::Key_P, Qt::ControlModifier);
    return names;
  };
  const QString wanted = Words::tr("&Export views...").remove("...").section("(&", 0, 0);
  EXPECT_FALSE(found("views export").filter(wanted).isEmpty()) << wanted.toStdString();
  EXPECT_FALSE(found(wanted).filter(wanted).isEmpty());
  speak("en");
  EXPECT_EQ(englishOf("&Export views..."), "&Export views...");
}

/// The rows of pixels that a field's text takes, from the middle of the field.
std::pair<int, int> rows_of(QLineEdit& field) {
  field.resize(260, field.sizeHint().height());
  const QImage picture = field.grab().toImage();
  constexpr int kFrame = 3, kDark = 120;
  int first = -1, last = -1;
  for (int y = kFrame; y < picture.height() - kFrame; ++y) {
    for (int x = kFrame; x < picture.width() - kFrame; ++x) {
      if (qGray(picture.pixel(x, y)) >= kDark) continue;
      if (first < 0) first = y;
      last = y;
    }
  }
  return {first - picture.height() / 2, last - picture.height() / 2};
}

// Qt 6.4 draws what another font fills in too high in a field, and cuts it there.
TEST_F(Languages, WhatIsTypedStandsAsHighAsWhatTheFieldSuggests) {
  const QFont usual = QApplication::font();
  EXPECT_EQ(font_of("en", usual), usual);
  speak("zh_CN");
  QApplication::setFont(font_of("zh_CN", usual));
  const QString text = Words::tr("as the cluster says");
  ASSERT_TRUE(hasChinese(text));
  QLineEdit typed(text), suggests;
  suggests.setPlaceholderText(text);
  QPalette dark = suggests.palette();
  dark.setColor(QPalette::PlaceholderText, Qt::black);
  suggests.setPalette(dark);
  EXPECT_EQ(rows_of(typed), rows_of(suggests));
  EXPECT_GT(rows_of(typed).second, rows_of(typed).first) << "nothing is drawn";
  QDoubleSpinBox price;
  price.setSpecialValueText(text);
  EXPECT_EQ(price.fontInfo().family(), typed.fontInfo().family());
  QApplication::setFont(usual);
}

TEST_F(Languages, PlaceholdersAreFilledInTheOtherOrder) {
  EXPECT_EQ(Words::tr("%1 of step %2").arg("gen").arg(3), "gen of step 3");
  speak("zh_CN");
  const QString text = Words::tr("%1 of step %2").arg("gen").arg(3);
  EXPECT_TRUE(hasChinese(text));
  EXPECT_LT(text.indexOf("3"), text.indexOf("gen"));
  speak("en");
  EXPECT_EQ(Words::tr("%1 of step %2").arg("gen").arg(3), "gen of step 3");
}

TEST_F(Languages, AChoiceIsRememberedAndSoAreTheColoursAlone) {
  QTemporaryDir folder;
  const std::filesystem::path file = folder.filePath("window.json").toStdString();
  {
    MainWindow window(file);
    window.show();
    for (QAction* action : window.findChildren<QAction*>()) {
      if (action->text() == nameOfLanguage("zh_CN")) action->trigger();
    }
    window.close();
  }
  Problems problems;
  EXPECT_EQ(read_workspace(file, problems).language, "zh_CN");
  {
    MainWindow window(file);
    window.show();
    ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
    window.setTheme(Theme::light);
    QTest::keyClick(&window, Qt::Key_T, Qt::ControlModifier);
    window.close();
  }
  EXPECT_TRUE(read_workspace(file, problems).dark);
  EXPECT_EQ(read_workspace(file, problems).language, "zh_CN");
  EXPECT_TRUE(problems.empty());
  QApplication::setPalette(paletteOf(Theme::light));
}

}  // namespace
}  // namespace tessera::gui
