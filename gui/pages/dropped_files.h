// SPDX-License-Identifier: GPL-3.0-or-later
// Files that are dropped onto the window are opened as its menu opens them; nothing in them is run.
#pragma once

#include "gui/pages/main_window.h"

namespace tessera::gui {

/// From now on, wherever in the window they are dropped. Owned by the window.
void takeDroppedFiles(MainWindow& window);

/// Each by what it is (gui/document/file_kind.h); further runs are drawn beside the first. The
/// document's file_problems say what could not be opened.
void openFiles(MainWindow& window, const QStringList& paths);

}  // namespace tessera::gui
