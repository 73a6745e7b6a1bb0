// SPDX-License-Identifier: GPL-3.0-or-later
// The tables of a run: prediction beside measurement, and what each rank does.
#include <QHeaderView>

#include "gui/views/table.h"
#include "gui/views/view.h"

namespace tessera::gui {
namespace {

QTableView* tableOf(QAbstractItemModel* model, const QString& name, int bad_role) {
  QTableView* table = makeTable(model, name, bad_role);
  table->verticalHeader()->hide();
  table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  return table;
}

const RegisteredView kComparisonView(
    {"comparison", Place::tables, 0, 3,
     "<b>Predicted and measured</b>, mean over the steps after two",
     [](Session& session) -> QWidget* {
       return tableOf(session.run()->comparison(), "Prediction and measurement",
                      ComparisonModel::BadRole);
     }});
const RegisteredView kRanksView({"ranks", Place::tables, 1, 2, "<b>Ranks</b>",
                                 [](Session& session) -> QWidget* {
                                   return tableOf(session.run()->ranks(), "Ranks of the run",
                                                  RankStateModel::BadRole);
                                 }});

}  // namespace
}  // namespace tessera::gui
