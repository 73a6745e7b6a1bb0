// SPDX-License-Identifier: GPL-3.0-or-later
// Texts of files are shown letter by letter, also where Qt would take them for HTML.
#include <gtest/gtest.h>

#include <QHeaderView>
#include <QHelpEvent>
#include <QLabel>
#include <QMessageBox>
#include <QStandardItemModel>
#include <QTableView>
#include <QTemporaryDir>
#include <QTextDocumentFragment>
#include <QToolTip>
#include <filesystem>
#include <fstream>

#include "gui/pages/main_window.h"
#include "gui/samples/sample_model.h"
#include "gui/views/elided_label.h"
#include "gui/views/table.h"
#include "tests/gui/sample_lines.h"
#include "tests/gui/window_flow.h"

namespace tessera::gui {
namespace {

const QString kHostile =
    "<h1>BIG</h1>  two spaces\n<script>alert(1)</script> a < b &lt; c <img src='file:///none.png'>";

/// What the tip over this place says, as a reader sees it.
QString tipAt(QWidget& widget, const QPoint& at) {
  QToolTip::hideText();
  QHelpEvent help(QEvent::ToolTip, at, widget.mapToGlobal(at));
  QApplication::sendEvent(&widget, &help);
  for (const QWidget* each : QApplication::topLevelWidgets()) {
    const auto* tip = qobject_cast<const QLabel*>(each);
    if (tip == nullptr || !tip->inherits("QTipLabel") || !tip->isVisible()) continue;
    const bool markup = Qt::mightBeRichText(tip->text());
    const QString read = QTextDocumentFragment::fromHtml(tip->text()).toPlainText();
    return markup ? QString(read).replace(QChar::Nbsp, ' ') : tip->text();
  }
  return {};
}

TEST(PlainTips, AreWhatTheFileHas) {
  QStandardItemModel model(2, 1);
  model.setItem(0, 0, new QStandardItem(kHostile));
  model.setItem(1, 0, new QStandardItem("short"));
  model.item(1, 0)->setToolTip(kHostile);
  model.setHorizontalHeaderItem(0, new QStandardItem("head"));
  model.horizontalHeaderItem(0)->setToolTip(kHostile);
  QWidget top;
  auto* table = makeTable(&model, "table", Qt::UserRole);
  table->setParent(&top);
  table->setGeometry(0, 0, 200, 120);
  table->setColumnWidth(0, 80);
  auto* label = new ElidedLabel(kHostile);
  label->setParent(&top);
  label->setGeometry(0, 120, 80, 20);
  auto* box = new QWidget(&top);
  box->setGeometry(0, 140, 80, 20);
  box->setToolTip(kHostile);
  top.resize(200, 160);
  top.show();
  ASSERT_TRUE(QTest::qWaitForWindowExposed(&top));
  const auto cell = [&](int row) {
    return tipAt(*table->viewport(), table->visualRect(model.index(row, 0)).center());
  };
  EXPECT_EQ(cell(0), kHostile) << "it has no room";
  EXPECT_EQ(cell(1), kHostile);
  EXPECT_EQ(tipAt(*table->horizontalHeader()->viewport(), {10, 5}), kHostile);
  EXPECT_EQ(tipAt(*label, {5, 5}), kHostile);
  EXPECT_EQ(tipAt(*box, {5, 5}), kHostile);
  model.item(1, 0)->setToolTip("x <= 3 & more");
  EXPECT_EQ(cell(1), "x <= 3 & more");
}

TEST(PlainTips, AQuestionHasNoMarkupEither) {
  QMessageBox box(QMessageBox::Question, "Resume", kHostile, QMessageBox::Yes);
  box.show();
  ASSERT_TRUE(QTest::qWaitForWindowExposed(&box));
  int labels = 0;
  for (const QLabel* label : box.findChildren<QLabel*>()) {
    if (label->text() != kHostile) continue;
    ++labels;
    EXPECT_EQ(label->textFormat(), Qt::PlainText);
  }
  EXPECT_EQ(labels, 1);
}

// Somebody else's run, by the mouse.
TEST(PlainTips, OfASampleAreItsOwnLetters) {
  const QTemporaryDir folder;
  const std::filesystem::path run = folder.filePath("r<b>bold").toStdString();
  std::filesystem::create_directory(run);
  const std::string text = "<b>q</b><img src='x.png'> " + std::string(300, 'w') + " </b> end";
  std::ofstream(run / "samples.jsonl") << line_of(1, 0.5, text);
  std::ofstream(run / "metrics.jsonl") << "{\"step\":1,\"data\":{\"training/global_step\":1}}\n";
  MainWindow window;
  window.resize(1280, 800);
  window.show();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
  ASSERT_TRUE(window.openRun(QString::fromStdString(run.string()), false));
  for (auto* tabs : window.run().findChildren<QTabWidget*>()) {
    for (int tab = 0; tab < tabs->count(); ++tab) {
      if (tabs->tabText(tab) == "Samples") tabs->setCurrentIndex(tab);
    }
  }
  QTableView* table = nullptr;
  for (auto* each : window.findChildren<QTableView*>()) {
    if (each->accessibleName() == "Samples of the run") table = each;
  }
  ASSERT_NE(table, nullptr);
  ASSERT_TRUE(wait_for([&] { return table->model()->rowCount() == 1; }));
  const QModelIndex at = table->model()->index(0, SampleModel::Response);
  ASSERT_TRUE(at.data().toString().contains("<img"));
  table->scrollTo(at);
  EXPECT_EQ(tipAt(*table->viewport(), table->visualRect(at).topLeft() + QPoint(8, 8)),
            at.data().toString());
  const QString path = QString::fromStdString(run.string());
  QWidget* name = nullptr;
  for (auto* each : window.run().findChildren<QWidget*>()) {
    if (each->toolTip().contains("bold")) name = each;
  }
  ASSERT_NE(name, nullptr);
  EXPECT_EQ(tipAt(*name, {5, 5}), path);
}

}  // namespace
}  // namespace tessera::gui
