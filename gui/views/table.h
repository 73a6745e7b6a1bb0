// SPDX-License-Identifier: GPL-3.0-or-later
// A table in the window's style. Tab goes on to the next control. GUI thread.
#pragma once

#include <QString>
#include <QTableView>

namespace tessera::gui {

/// What has `bad_role` true is written in the theme's colour for what is wrong; -1 = nothing is.
QTableView* makeTable(QAbstractItemModel* model, const QString& name, int bad_role = -1);

}  // namespace tessera::gui
