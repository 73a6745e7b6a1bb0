// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/step_views/time_ruler.h"

namespace tessera::gui {
namespace {

constexpr int kTicksApart = 110;

}  // namespace

void paintRuler(QPainter& painter, const TimeAxis& axis, const QRect& place, const QColor& text) {
  painter.setPen(text);
  const int below = place.bottom();
  for (const Tick& tick : ticks_of(axis, place.width(), kTicksApart)) {
    const int x = place.left() + static_cast<int>(tick.x);
    painter.drawLine(x, below - 5, x, below);
    painter.drawText(QRect(x + 4, place.top(), kTicksApart, place.height() - 4),
                     Qt::AlignLeft | Qt::AlignVCenter, tick.text);
  }
  painter.fillRect(place.left(), below, place.width(), 1, text);
}

}  // namespace tessera::gui
