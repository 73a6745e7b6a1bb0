// SPDX-License-Identifier: GPL-3.0-or-later
// Texts that are read and not written, as a file or a run has them: in letters of one width, and in
// tips. GUI thread.
#pragma once

#include <QPlainTextEdit>
#include <QString>

namespace tessera::gui {

/// Lines stay whole, Tab goes on to the next control. `name`: for those who hear the window.
void showAsFixedText(QPlainTextEdit& text, const QString& name);

/// Of a tip, which else would be shown as HTML where it looks like some.
QString plainTip(const QString& text);

}  // namespace tessera::gui
