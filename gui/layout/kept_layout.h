// SPDX-License-Identifier: GPL-3.0-or-later
// Where the window stands and how its parts share it, as the workspace keeps it. GUI thread.
#pragma once

#include <QMainWindow>

#include "gui/kept/workspace.h"

namespace tessera::gui {

/// Of splitters and tabs that have an object name: Qt gives children no lasting order.
WindowLayout layout_of(const QMainWindow& window);

/// What is of another version of the window, or no layout at all, changes nothing. The page in
/// front stays: what stood on it is not there any more. The window then fits its screen, which may
/// be smaller than the one it was kept on.
void restore(QMainWindow& window, const WindowLayout& layout);

/// A size that was asked for, also of a window that filled its screen when it was kept.
void give_size(QWidget& window, const QSize& size);

}  // namespace tessera::gui
