// SPDX-License-Identifier: GPL-3.0-or-later
// A table in the window's style, and a model as CSV. Tab goes on to the next control. GUI thread.
#pragma once

#include <QString>
#include <QTableView>
#include <string>

namespace tessera::gui {

/// What has `bad_role` true is written in the theme's colour for what is wrong; -1 = nothing is.
QTableView* makeTable(QAbstractItemModel* model, const QString& name, int bad_role = -1);

/// The table is never narrower than its columns have been: what is beside it gives way.
void keepColumnsInSight(QTableView* table);

/// What the model says in its cells, under the names of its columns and behind those of its rows
/// where they have some (RFC 4180); empty where it has no rows. Quantities are numbers in full, in
/// the unit that their header says (gui/units/number_role.h).
std::string csvOf(const QAbstractItemModel& model);

}  // namespace tessera::gui
