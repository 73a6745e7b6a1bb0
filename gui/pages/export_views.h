// SPDX-License-Identifier: GPL-3.0-or-later
// PNG files of the pages and of each view in them.
#pragma once

#include <QString>
#include <QStringList>

#include "gui/pages/main_window.h"

namespace tessera::gui {

/// Writes explore.png, run.png and VIEW.png per named view; where nothing fits explore.png alone,
/// and the page of the run only where one is open. Returns the files written. Throws Error(io).
QStringList exportViews(MainWindow& window, const QString& folder);

/// Runs events until no search is under way, at most `seconds`; false when it still is.
bool waitForPlans(const Session& session, double seconds);

/// Pins the plans of the first rows and goes back to the first; waits for each at most `seconds`.
void pinBest(Session& session, int count, double seconds);

}  // namespace tessera::gui
