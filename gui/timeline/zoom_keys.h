// SPDX-License-Identifier: GPL-3.0-or-later
// How one moves about in every picture that is zoomed: W and S or + and - zoom, the wheel, too;
// over time A and D or the arrows move. Pure functions.
#pragma once

namespace tessera::gui {

/// Times as much in a pixel for a key (Qt::Key); 1 = another key.
double zoomOf(int key);

/// The share of the width to move to the right by for a key (Qt::Key); 0 = another key.
double panOf(int key);

/// Times as much in a pixel for a turn of the wheel in eighths of a degree, away from the
/// user above 0.
double zoomOfWheel(int turned);

}  // namespace tessera::gui
