// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/table.h"

#include <QHeaderView>
#include <QHelpEvent>
#include <QScrollBar>
#include <QStyledItemDelegate>
#include <QToolTip>
#include <algorithm>
#include <utility>
#include <vector>

#include "cost_models/documents/csv.h"
#include "gui/document/text.h"
#include "gui/models/colours.h"
#include "gui/units/number_role.h"
#include "gui/views/fixed_text.h"

namespace tessera::gui {
namespace {

constexpr int kDarkRim = 0xb0;

class BadTextDelegate : public QStyledItemDelegate {
 public:
  BadTextDelegate(int bad_role, QObject* parent) : QStyledItemDelegate(parent), role_(bad_role) {}

  /// A text that has no room in its cell is told in full.
  bool helpEvent(QHelpEvent* event, QAbstractItemView* view, const QStyleOptionViewItem& option,
                 const QModelIndex& index) override {
    if (event->type() != QEvent::ToolTip) {
      return QStyledItemDelegate::helpEvent(event, view, option, index);
    }
    const bool shortened = sizeHint(option, index).width() > option.rect.width();
    const QVariant own = index.data(Qt::ToolTipRole);
    const QVariant text = own.isValid() || !shortened ? own : index.data();
    QToolTip::showText(event->globalPos(), plainTip(text.toString()), view);
    return true;
  }

 protected:
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override {
    QStyledItemDelegate::initStyleOption(option, index);
    const bool wraps = option->features.testFlag(QStyleOptionViewItem::WrapText);
    if (wraps) option->text = withUnitsKept(option->text);
    // The rim of an empty box is made of this role: on dark ground it would not be seen.
    const bool dark = themeOf(option->palette) == Theme::dark;
    if (dark && option->features.testFlag(QStyleOptionViewItem::HasCheckIndicator)) {
      option->palette.setColor(QPalette::Window, QColor(kDarkRim, kDarkRim, kDarkRim));
    }
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
  table->setWordWrap(false);  // rows are one line high: dots say that there is more
  table->verticalHeader()->setDefaultSectionSize(22);
  table->horizontalHeader()->setHighlightSections(false);
  table->horizontalHeader()->setStretchLastSection(true);
  return table;
}

void keepColumnsInSight(QTableView* table) {
  const QHeaderView* header = table->horizontalHeader();
  const auto keep = [=] {
    const int bar = table->verticalScrollBar()->sizeHint().width();
    table->setMinimumWidth(
        std::max(table->minimumWidth(), header->length() + bar + 2 * table->frameWidth()));
  };
  QObject::connect(header, &QHeaderView::sectionResized, table, keep);
}

std::string csvOf(const QAbstractItemModel& model) {
  if (model.rowCount() == 0) return {};
  CsvTable table;
  // Rows that are numbered only have no names to lose.
  const auto name = [&](int row) { return model.headerData(row, Qt::Vertical); };
  const bool named = name(0).typeId() == QMetaType::QString;
  if (named) table.header.emplace_back("row");
  std::vector<int> roles;  // by column
  for (int column = 0; column < model.columnCount(); ++column) {
    QVariant header = model.headerData(column, Qt::Horizontal, kNumberRole);
    roles.push_back(header.isValid() ? kNumberRole : static_cast<int>(Qt::DisplayRole));
    if (!header.isValid()) header = model.headerData(column, Qt::Horizontal);
    table.header.push_back(header.toString().toStdString());
  }
  for (int row = 0; row < model.rowCount(); ++row) {
    CsvRow cells;
    if (named) cells.cells.push_back(name(row).toString().toStdString());
    for (int column = 0; column < model.columnCount(); ++column) {
      const QVariant value = model.index(row, column).data(roles[static_cast<std::size_t>(column)]);
      const bool number = value.typeId() == QMetaType::Double;
      cells.cells.push_back(
          (number ? QString::number(value.toDouble(), 'g', 12) : value.toString()).toStdString());
    }
    table.rows.push_back(std::move(cells));
  }
  return to_csv(table);
}

}  // namespace tessera::gui
