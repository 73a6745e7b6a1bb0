// SPDX-License-Identifier: GPL-3.0-or-later
// How one moves about in every picture over time: W and S or + and - zoom, A and D or the arrows
// move, the wheel zooms. Pure functions.
#pragma once

namespace tessera::gui {

/// Times as many nanoseconds a pixel for a key (Qt::Key); 1 = another key.
double zoomOf(int key);

/// The share of the width to move to the right by for a key (Qt::Key); 0 = another key.
double panOf(int key);

/// Times as many nanoseconds a pixel for a turn of the wheel in eighths of a degree, away from the
/// user above 0.
double zoomOfWheel(int turned);

}  // namespace tessera::gui
