// SPDX-License-Identifier: GPL-3.0-or-later
// A text that is read and not written, in letters of one width: reports, logs, files. GUI thread.
#pragma once

#include <QPlainTextEdit>
#include <QString>

namespace tessera::gui {

/// Lines stay whole, Tab goes on to the next control. `name`: for those who hear the window.
void showAsFixedText(QPlainTextEdit& text, const QString& name);

}  // namespace tessera::gui
