// SPDX-License-Identifier: GPL-3.0-or-later
// On a small screen no text is cut without a sign: it fits, wraps, or ends with dots and is told in
// full by what pointing to it shows.
#include <gtest/gtest.h>

#include <QAbstractTextDocumentLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QTabWidget>
#include <QTemporaryDir>
#include <QTextBlock>
#include <QTextDocument>
#include <QTextTable>
#include <cmath>
#include <fstream>
#include <set>

#include "gui/document/text.h"
#include "gui/pages/command_palette.h"
#include "gui/translations/language.h"
#include "gui/views/chart.h"
#include "gui/views/elided_label.h"
#include "gui/views/message_bar.h"
#include "tests/gui/explore_flow.h"

namespace tessera::gui {
namespace {

const QString kDots = QString::fromUtf8("\u2026");

std::string nameOf(const QWidget& widget) {
  const QWidget* above = widget.parentWidget();
  return (widget.objectName() + " in " + (above == nullptr ? "" : above->objectName()))
      .toStdString();
}

void expectFits(const QLabel& label) {
  if (dynamic_cast<const ElidedLabel*>(&label) != nullptr || label.text().isEmpty()) return;
  const QSize room = label.size() + QSize(1, 1), wanted = label.sizeHint();
  if (label.wordWrap()) {
    EXPECT_LE(label.heightForWidth(label.width()), room.height())
        << nameOf(label) << ": " << label.text().toStdString();
    return;
  }
  EXPECT_LE(wanted.width(), room.width()) << nameOf(label) << ": " << label.text().toStdString();
  EXPECT_LE(wanted.height(), room.height()) << nameOf(label) << ": " << label.text().toStdString();
}

void expectFits(const MessageBar& bar) {
  const auto* line = bar.findChild<QLabel*>();
  expectFits(*line);
  if (line->text() == withUnitsKept(bar.text())) return;
  EXPECT_TRUE(line->text().endsWith(kDots)) << line->text().toStdString();
  EXPECT_TRUE(line->toolTip().startsWith(bar.text())) << bar.text().toStdString();
}

void expectFits(const QPushButton& button) {
  const int text = button.fontMetrics().size(Qt::TextShowMnemonic, button.text()).width();
  EXPECT_LE(text, button.width()) << button.text().toStdString();
}

/// Names of bars stand below one another.
void expectNamesApart(const Chart& chart) {
  if (qSharedPointerDynamicCast<QCPAxisTickerText>(chart.yAxis->ticker()) == nullptr) return;
  const double apart = std::abs(chart.yAxis->coordToPixel(1) - chart.yAxis->coordToPixel(0));
  EXPECT_GE(apart, QFontMetrics(chart.yAxis->tickLabelFont()).capHeight()) << nameOf(chart);
}

/// Where a text ends with dots, what is told there is longer and begins alike.
void expectTold(const Chart& chart, const QString& drawn, const QPoint& at) {
  if (!drawn.endsWith(kDots)) return;
  const QString told = chart.hintAt(at);
  EXPECT_GT(told.size(), drawn.size() - 1) << drawn.toStdString();
  EXPECT_TRUE(told.startsWith(drawn.chopped(1))) << told.toStdString();
}

void expectFits(Chart& chart) {
  const QRect all = chart.rect();
  for (int i = 0; chart.legend->visible() && i < chart.legend->itemCount(); ++i) {
    auto* entry = qobject_cast<QCPPlottableLegendItem*>(chart.legend->item(i));
    if (entry == nullptr) continue;  // an empty cell
    const QString name = entry->plottable()->name();
    EXPECT_TRUE(all.contains(entry->outerRect())) << name.toStdString();
    const QCPLayoutElement& place = *entry;
    EXPECT_LE(place.minimumOuterSizeHint().width(), entry->outerRect().width() + 1)
        << name.toStdString();
    expectTold(chart, name, entry->outerRect().center());
  }
  const QRect plot = chart.axisRect()->rect();
  const auto wide = [](const QCPAxis& axis) {
    return QFontMetrics(axis.labelFont()).horizontalAdvance(axis.label());
  };
  EXPECT_LE(wide(*chart.xAxis), all.width()) << chart.xAxis->label().toStdString();
  EXPECT_LE(wide(*chart.yAxis), all.height()) << chart.yAxis->label().toStdString();
  expectTold(chart, chart.xAxis->label(), {plot.center().x(), plot.bottom() + 20});
  expectTold(chart, chart.yAxis->label(), {3, plot.center().y()});
  for (int i = 0; i < chart.itemCount(); ++i) {
    const auto* text = qobject_cast<QCPItemText*>(chart.item(i));
    if (text == nullptr || text->text().isEmpty()) continue;
    const QPointF from = text->topLeft->pixelPosition(), to = text->bottomRight->pixelPosition();
    EXPECT_TRUE(all.contains(from.toPoint()) && all.contains(to.toPoint()))
        << text->text().toStdString();
    expectTold(chart, text->text(), ((from + to) / 2).toPoint());
  }
}

// Whatever the font and the size are: letters of Chinese fonts are larger.
TEST(ChartNames, StandApartWithAndWithoutALegend) {
  const QStringList names{"reshard", "gen", "old_log_prob",  "ref",         "values",
                          "reward",  "adv", "update_critic", "update_actor"};
  std::vector<ChartStack> stacks;
  for (int i = 0; i < 10; ++i) {
    const QString name = QString::fromUtf8("\u4f18\u5316\u5668\u72b6\u6001 %1").arg(i);
    stacks.push_back({name, Qt::gray, std::vector<double>(names.size(), 1 + i)});
  }
  int with = 0, without = 0;
  for (const double size : {9.0, 11.0, 13.0}) {
    Chart chart("");
    chart.show();
    QFont font = chart.font();
    font.setPointSizeF(size);
    chart.setFont(font);
    chart.yAxis->setTickLabelFont(font);
    chart.legend->setFont(font);
    for (int at = 0; at < 30; ++at) {
      const int width = 240 + 90 * (at % 3), height = 200 + 20 * (at / 3);
      chart.resize(width, height);
      chart.showBars("GiB", names, stacks, 60, "usable 60 GiB of 80 GiB");
      chart.replot(QCustomPlot::rpImmediateRefresh);
      SCOPED_TRACE(std::to_string(width) + " x " + std::to_string(height) + " at " +
                   std::to_string(size));
      expectNamesApart(chart);
      EXPECT_GE(chart.axisRect()->width(), width / 3);  // beside the names of bars
      ++(chart.legend->visible() ? with : without);
      const QString says = chart.hintAt(chart.axisRect()->center());
      EXPECT_EQ(says.isEmpty(), chart.legend->visible()) << "what the colours mean is never lost";
      if (!says.isEmpty()) {
        for (const ChartStack& stack : stacks) EXPECT_TRUE(says.contains(stack.name));
      }
    }
  }
  EXPECT_GT(with, 0);
  EXPECT_GT(without, 0);
}

class Fitting : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!languages().contains(GetParam())) GTEST_SKIP() << "built without lrelease";
    speak(GetParam());
  }
  void TearDown() override { speak("en"); }

  static void expectFitsAll(QWidget& page) {
    for (QWidget* widget : page.findChildren<QWidget*>()) {
      if (!widget->isVisible() || widget->visibleRegion().isEmpty()) continue;
      if (auto* bar = qobject_cast<MessageBar*>(widget)) expectFits(*bar);
      if (auto* label = qobject_cast<QLabel*>(widget)) expectFits(*label);
      if (auto* button = qobject_cast<QPushButton*>(widget)) expectFits(*button);
      if (auto* chart = qobject_cast<Chart*>(widget)) expectFits(*chart);
    }
  }
};

TEST_P(Fitting, NoTextIsCutOnASmallScreen) {
  MainWindow window;
  window.resize(1280, 720);
  window.show();
  window.session().ask({.model = "qwen2.5-7b",
                        .cluster = "h100-64",
                        .workload = "ppo-7b-1k",
                        .nodes = 2,
                        .fixed = {"placement=actor+reference | critic", "actor.tp=4"}});
  ASSERT_TRUE(wait_for([&] { return window.session().document().valid(); }));
  ASSERT_TRUE(window.openRun(QString(TESSERA_SOURCE_DIR) + "/tests/gui/data/run", false));
  for (QWidget* page :
       {static_cast<QWidget*>(&window.explore()), static_cast<QWidget*>(&window.understand()),
        static_cast<QWidget*>(&window.run())}) {
    window.showPage(page);
    QCoreApplication::processEvents();
    expectFitsAll(*page);
    for (QTabWidget* tabs : page->findChildren<QTabWidget*>()) {
      for (int tab = 0; tab < tabs->count(); ++tab) {
        SCOPED_TRACE(tabs->tabText(tab).toStdString());
        tabs->setCurrentIndex(tab);
        ASSERT_TRUE(wait_for([&] { return !window.session().isWorking(); }));
        QCoreApplication::processEvents();
        expectFitsAll(*tabs->currentWidget());
      }
      tabs->setCurrentIndex(0);
    }
  }
  // What stands behind the answer leaves the pictures below their room.
  window.showPage(&window.explore());
  for (MessageBar* bar : window.explore().findChildren<MessageBar*>()) {
    for (QPushButton* button : bar->findChildren<QPushButton*>()) {
      if (button->isVisible() && button->isCheckable()) button->setChecked(true);
    }
  }
  QCoreApplication::processEvents();
  expectFitsAll(window.explore());
  for (const Chart* chart : window.explore().findChildren<Chart*>()) {
    if (chart->isVisible()) expectNamesApart(*chart);
  }
  EXPECT_EQ(window.size(), QSize(1280, 720));
  auto* rules = window.findChild<QWidget*>("rules")->findChild<QTableView*>();
  EXPECT_LE(rules->horizontalHeader()->length(), rules->viewport()->width());
  window.showPage(&window.run());
  QCoreApplication::processEvents();
  auto* compared = window.findChild<QWidget*>("comparison");
  const auto* table = qobject_cast<QTableView*>(compared);
  ASSERT_NE(table, nullptr);
  EXPECT_LE(table->horizontalHeader()->length(), table->viewport()->width());
}

// The columns of ten phases leave room to read them above the names of all.
TEST(TimeByPhase, IsReadOnASmallScreen) {
  QTemporaryDir folder;
  std::ofstream steps(folder.filePath("metrics.jsonl").toStdString());
  for (int step = 1; step <= 20; ++step) {
    steps << "{\"step\": " << step << ", \"data\": {\"timing_s/step\": 9";
    for (const Phase phase : kEveryPhase) {
      if (phase != Phase::load) steps << ", \"timing_s/" << name_of(phase) << "\": 0.9";
    }
    steps << "}}\n";
  }
  steps.close();
  MainWindow window;
  window.resize(1280, 720);
  window.show();
  ASSERT_TRUE(window.openRun(folder.path(), false));
  window.showPage(&window.run());
  QCoreApplication::processEvents();
  auto* chart = window.findChild<Chart*>("step_phases");
  ASSERT_NE(chart, nullptr);
  EXPECT_GE(chart->axisRect()->height(), 80);
  EXPECT_TRUE(chart->legend->visible());
  int names = 0;
  for (int i = 0; i < chart->legend->itemCount(); ++i) {
    auto* entry = qobject_cast<QCPPlottableLegendItem*>(chart->legend->item(i));
    if (entry == nullptr) continue;
    ++names;
    EXPECT_FALSE(entry->plottable()->name().endsWith(kDots));
    EXPECT_GT(entry->outerRect().top(), chart->axisRect()->bottom());
  }
  EXPECT_EQ(names, kPhaseCount - 1);
  for (const char* name : {"reward", "kl", "throughput", "reshard_rate"}) {
    const auto* other = window.findChild<Chart*>(name);
    EXPECT_GE(other->axisRect()->height(), 60) << name;
    EXPECT_GE(other->yAxis->ticker()->tickCount(), 3) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Languages, Fitting, ::testing::Values("en", "zh_CN"));

TEST(MessageBar, ALineDoesNotEndBetweenANumberAndItsUnit) {
  MessageBar bar("Answer");
  bar.say("124.28 +- 8.92 s  1,051 tok/s/GPU  row 2: +0.05 %", Tone::calm);
  EXPECT_EQ(bar.text(), "124.28 +- 8.92 s  1,051 tok/s/GPU  row 2: +0.05 %");
  const QString nbsp(QChar::Nbsp);
  EXPECT_EQ(bar.findChild<QLabel*>()->toolTip(), bar.text());
  EXPECT_EQ(withUnitsKept(bar.text()),
            "124.28 +- 8.92" + nbsp + "s  1,051" + nbsp + "tok/s/GPU  row 2: +0.05" + nbsp + "%");
  EXPECT_EQ(withUnitsKept("16 samples of 4 backends"), "16 samples of 4 backends");
  bar.resize(2000, 60);
  bar.show();
  EXPECT_TRUE(bar.findChild<QLabel*>()->text().contains("+0.05" + nbsp + "%"))
      << bar.findChild<QLabel*>()->text().toStdString();
}

// On 1280 x 720 the list of keys is a dialog that can be seen whole.
TEST(Keys, FitASmallScreenAndSayOfWhatTheyAre) {
  MainWindow window;
  window.show();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
  QSize size;
  QString text;
  with_dialog(&window, [&](QDialog& dialog) {
    size = dialog.sizeHint();
    text = dialog.findChild<QLabel*>()->text().replace(QChar::Nbsp, ' ');
    dialog.reject();
  });
  for (QAction* action : commandsOf(*window.menuBar())) {
    if (gui::nameOf(*action) == "Keys") action->trigger();
  }
  EXPECT_LT(size.width(), 1280);
  EXPECT_LT(size.height(), 600);
  EXPECT_TRUE(text.contains("Language: English")) << text.toStdString();
}

// Chinese names have their access keys behind them: "打开方案(&O)...".
TEST(Keys, NamesHaveNoAccessKeys) {
  if (!languages().contains("zh_CN")) GTEST_SKIP() << "built without lrelease";
  speak("zh_CN");
  MainWindow window;
  for (const QAction* action : commandsOf(*window.menuBar())) {
    const QString name = gui::nameOf(*action);
    EXPECT_FALSE(name.contains('(') || name.contains('&')) << name.toStdString();
  }
  window.show();
  EXPECT_TRUE(QTest::qWaitForWindowActive(&window));
  // Keys and what they do stand on one line: the baselines of a row are equal.
  int rows = 0;
  with_dialog(&window, [&](QDialog& dialog) {
    QTextDocument text;
    text.setDefaultFont(dialog.font());
    text.setHtml(dialog.findChild<QLabel*>()->text());
    const auto* table = qobject_cast<QTextTable*>(text.rootFrame()->childFrames().value(0));
    for (int row = 0; table != nullptr && row < table->rows(); ++row) {
      std::set<int> heights;
      for (int column = 0; column < 2; ++column) {
        const QTextBlock block = table->cellAt(row, column).firstCursorPosition().block();
        const QRectF box = text.documentLayout()->blockBoundingRect(block);
        const QTextLine line = block.layout()->lineAt(0);
        heights.insert(qRound(box.top() + line.y() + line.ascent()));
      }
      EXPECT_EQ(heights.size(), 1u) << row;
      ++rows;
    }
    dialog.reject();
  });
  for (QAction* action : commandsOf(*window.menuBar())) {
    if (action->shortcut() == QKeySequence("?")) action->trigger();
  }
  EXPECT_GT(rows, 20);
  speak("en");
}

TEST(Elided, WhatHasNoRoomIsToldInFull) {
  Chart chart("A title that is much longer than the chart is wide, for whoever reads it");
  chart.resize(220, 160);
  chart.show();
  chart.showLines("a unit that is longer than the chart is high, too",
                  {{"a rule with a name that has no room in a legend", Qt::red, {{0, 0}, {1, 1}}},
                   {"short", Qt::blue, {{0, 1}, {1, 0}}}});
  QCoreApplication::processEvents();
  expectFits(chart);
  EXPECT_TRUE(chart.hintAt({60, 12}).startsWith("A title that is much longer"));
  EXPECT_TRUE(
      chart.legend->itemWithPlottable(chart.plottable(0))->plottable()->name().endsWith(kDots));
  chart.resize(900, 500);
  QCoreApplication::processEvents();
  EXPECT_FALSE(chart.plottable(0)->name().endsWith(kDots));
  EXPECT_TRUE(chart.hintAt({60, 12}).isEmpty());

  MessageBar bar("bar");
  bar.resize(400, 80);
  bar.show();
  bar.say("one two three four five six seven eight nine ten eleven twelve thirteen", Tone::calm);
  QCoreApplication::processEvents();
  EXPECT_EQ(bar.findChild<QLabel*>()->text(), bar.text());  // on two rows
  bar.say(QString("word ").repeated(200), Tone::calm);
  QCoreApplication::processEvents();
  expectFits(bar);
  EXPECT_TRUE(bar.findChild<QLabel*>()->text().endsWith(kDots));
}

}  // namespace
}  // namespace tessera::gui
