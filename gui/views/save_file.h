// SPDX-License-Identifier: GPL-3.0-or-later
// Asks for the name of a file, or of a folder, to be written. GUI thread.
#pragma once

#include <QString>
#include <QWidget>

namespace tessera::gui {

/// The file that was chosen; a name without a suffix gets that of `proposed`, which stands in the
/// dialog, in its folder where it has one. A file that is there is asked for first. Empty: none.
QString askFileToSave(QWidget* parent, const QString& title, const QString& proposed,
                      const QString& filter = {});

/// The folder that was chosen, or whose name was typed: it is made where it is not there. `accept`
/// is on the button. Empty: none.
QString askFolderToFill(QWidget* parent, const QString& title, const QString& accept);

}  // namespace tessera::gui
