// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/zoom_keys.h"

#include <QtCore/qnamespace.h>

#include <cmath>

namespace tessera::gui {
namespace {

constexpr double kZoom = 1.25;  // of a key, and of a notch of the wheel
constexpr double kPan = 0.12;   // of the width
constexpr double kNotch = 120;  // eighths of a degree

}  // namespace

double zoomOf(int key) {
  switch (key) {
    case Qt::Key_W:
    case Qt::Key_Plus:
    case Qt::Key_Equal:  // where + needs Shift
      return 1 / kZoom;
    case Qt::Key_S:
    case Qt::Key_Minus:
      return kZoom;
    default:
      return 1;
  }
}

double panOf(int key) {
  switch (key) {
    case Qt::Key_A:
    case Qt::Key_Left:
      return -kPan;
    case Qt::Key_D:
    case Qt::Key_Right:
      return kPan;
    default:
      return 0;
  }
}

double zoomOfWheel(int turned) { return std::pow(kZoom, -turned / kNotch); }

}  // namespace tessera::gui
