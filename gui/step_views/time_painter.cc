// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/step_views/time_painter.h"

namespace tessera::gui {
namespace {

constexpr int kTicksApart = 110;

}  // namespace

QFont smallOf(const QFont& font) {
  QFont small = font;
  small.setPointSizeF(font.pointSizeF() * 0.82);
  return small;
}

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

void paintMoment(QPainter& painter, const TimePicture& picture, const QRect& place) {
  if (!picture.moment) return;
  const double x = picture.axis.x_of(*picture.moment);
  if (x < 0 || x >= place.width()) return;
  const int at = place.left() + static_cast<int>(x);
  painter.fillRect(at - 1, place.top(), 3, place.height(), picture.palette.color(QPalette::Base));
  painter.fillRect(at, place.top(), 1, place.height(), picture.palette.color(QPalette::Text));
}

void paintWhy(QPainter& painter, const QRect& place, const QPalette& palette, const QString& why) {
  painter.fillRect(place, palette.color(QPalette::Base));
  painter.setPen(palette.color(QPalette::Text));
  painter.drawText(place.adjusted(12, 12, -12, -12), Qt::AlignCenter | Qt::TextWordWrap, why);
}

}  // namespace tessera::gui
