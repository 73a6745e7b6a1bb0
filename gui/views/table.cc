// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/table.h"

#include <QHeaderView>
#include <QStyledItemDelegate>

#include "gui/models/colours.h"

namespace tessera::gui {
namespace {

class BadTextDelegate : public QStyledItemDelegate {
 public:
  BadTextDelegate(int bad_role, QObject* parent) : QStyledItemDelegate(parent), role_(bad_role) {}

 protected:
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override {
    QStyledItemDelegate::initStyleOption(option, index);
    if (!index.data(role_).toBool()) return;
    const Theme theme = themeOf(option->palette);
    option->palette.setColor(QPalette::Text, coloursOf(Tone::bad, theme).text);
  }

 private:
  int role_;
};

}  // namespace

QTableView* makeTable(QAbstractItemModel* model, const QString& name, int bad_role) {
  auto* table = new QTableView;
  table->setModel(model);
  table->setAccessibleName(name);
  table->setItemDelegate(new BadTextDelegate(bad_role, table));
  table->setSelectionBehavior(QAbstractItemView::SelectRows);
  table->setTabKeyNavigation(false);
  table->setAlternatingRowColors(true);
  table->setShowGrid(false);
  table->verticalHeader()->setDefaultSectionSize(22);
  table->horizontalHeader()->setHighlightSections(false);
  table->horizontalHeader()->setStretchLastSection(true);
  return table;
}

}  // namespace tessera::gui
