// SPDX-License-Identifier: GPL-3.0-or-later
// Tips show texts of files as they are: nothing in them is run as HTML.
#include <gtest/gtest.h>

#include <QHelpEvent>
#include <QStandardItemModel>
#include <QTableView>
#include <QToolTip>
#include <memory>

#include "gui/views/fixed_text.h"
#include "gui/views/table.h"

namespace tessera::gui {
namespace {

TEST(PlainTip, IsTheTextItself) {
  EXPECT_EQ(plainTip("a < b\nand c"), "a < b\nand c");
  EXPECT_EQ(plainTip("<h1>BIG</h1>"), "<p>&lt;h1&gt;BIG&lt;/h1&gt;</p>");
}

TEST(Table, ATipOfACellShowsItsTextAsItIs) {
  QStandardItemModel model(2, 1);
  const QString text = "<b>q</b><img src=\"none\"> a long prompt that does not fit its column";
  model.setItem(0, 0, new QStandardItem(text));
  auto* own = new QStandardItem("short");
  own->setToolTip(text);
  model.setItem(1, 0, own);
  const std::unique_ptr<QTableView> table(makeTable(&model, "Cells"));
  table->resize(200, 120);
  table->setColumnWidth(0, 60);
  table->show();
  for (int row = 0; row < 2; ++row) {
    const QPoint at = table->visualRect(model.index(row, 0)).center();
    QHelpEvent help(QEvent::ToolTip, at, table->viewport()->mapToGlobal(at));
    QApplication::sendEvent(table->viewport(), &help);
    EXPECT_TRUE(QToolTip::text().contains("&lt;b&gt;q&lt;/b&gt;&lt;img"))
        << row << ": " << QToolTip::text().toStdString();
    QToolTip::hideText();
  }
}

}  // namespace
}  // namespace tessera::gui
