// SPDX-License-Identifier: GPL-3.0-or-later
// The style sheet of a report: the window's colours, light or dark as the reader's browser asks.
#pragma once

#include <QString>

namespace tessera::gui {

/// CSS without the characters that XML and HTML read differently; it fetches nothing.
QString report_style();

}  // namespace tessera::gui
