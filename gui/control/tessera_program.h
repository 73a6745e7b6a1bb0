// SPDX-License-Identifier: GPL-3.0-or-later
// The command line as the window calls it: where it is, and why it refused. Any thread.
#pragma once

#include <QString>

namespace tessera::gui {

/// Beside this program, in its build tree, on PATH; empty where it is nowhere.
QString tesseraProgram();

/// A sentence where it is nowhere; empty where it is somewhere.
QString whyNoProgram();

/// What speaks against a command, behind its notes; of what it printed.
QString refusalIn(const QString& printed);

}  // namespace tessera::gui
