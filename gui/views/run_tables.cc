// SPDX-License-Identifier: GPL-3.0-or-later
// The tables of a run: prediction beside measurement, and what each rank does.
#include <QHeaderView>
#include <QTableView>

#include "gui/views/view.h"

namespace tessera::gui {
namespace {

QTableView* tableOf(QAbstractItemModel* model, const QString& name) {
  auto* table = new QTableView;
  table->setModel(model);
  table->setAccessibleName(name);
  table->setSelectionBehavior(QAbstractItemView::SelectRows);
  table->setAlternatingRowColors(true);
  table->setShowGrid(false);
  table->verticalHeader()->hide();
  table->verticalHeader()->setDefaultSectionSize(22);
  table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table->horizontalHeader()->setStretchLastSection(true);
  table->horizontalHeader()->setHighlightSections(false);
  return table;
}

const RegisteredView kComparisonView(
    {"comparison", Place::tables, 0, 3,
     "<b>Predicted and measured</b>, mean over the steps after two",
     [](Session& session) -> QWidget* {
       return tableOf(session.run()->comparison(), "Prediction and measurement");
     }});
const RegisteredView kRanksView({"ranks", Place::tables, 1, 2, "<b>Ranks</b>",
                                 [](Session& session) -> QWidget* {
                                   return tableOf(session.run()->ranks(), "Ranks of the run");
                                 }});

}  // namespace
}  // namespace tessera::gui
