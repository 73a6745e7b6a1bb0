// SPDX-License-Identifier: GPL-3.0-or-later
// The ranked plans as a table; the row that is looked at follows the session and changes it.
#include <QHeaderView>
#include <QTableView>

#include "gui/views/view.h"

namespace tessera::gui {
namespace {

void showSelectedRow(QTableView& table, const Session& session) {
  const QSignalBlocker quiet(table.selectionModel());
  table.selectRow(session.selectedRow());
  for (int column = 0; column < PlanTableModel::Layouts; ++column) {
    table.resizeColumnToContents(column);
  }
}

QWidget* makePlanTable(Session& session) {
  auto* table = new QTableView;
  table->setModel(session.plans());
  table->setSelectionBehavior(QAbstractItemView::SelectRows);
  table->setSelectionMode(QAbstractItemView::SingleSelection);
  table->setAlternatingRowColors(true);
  table->setShowGrid(false);
  table->setAccessibleName("Ranked plans");
  table->horizontalHeader()->setStretchLastSection(true);
  table->horizontalHeader()->setHighlightSections(false);
  table->verticalHeader()->setDefaultSectionSize(24);
  table->setMinimumHeight(90);
  Session* asked = &session;
  QObject::connect(table->selectionModel(), &QItemSelectionModel::currentRowChanged, table,
                   [asked](const QModelIndex& current) {
                     if (current.isValid()) asked->selectRow(current.row());
                   });
  QObject::connect(asked, &Session::planSelected, table, [=] { showSelectedRow(*table, *asked); });
  return table;
}

const RegisteredView kPlanTableView({"plans", Place::plans, 0, 1, "", makePlanTable});

}  // namespace
}  // namespace tessera::gui
