// SPDX-License-Identifier: GPL-3.0-or-later
// What pictures over the time of a step have in common: where what stands, the ticks of the time
// axis, the moment that is shown. Pure drawing.
#pragma once

#include <QColor>
#include <QFont>
#include <QPainter>
#include <QPalette>
#include <QRect>
#include <QSize>
#include <QString>
#include <optional>

#include "gui/timeline/time_axis.h"

namespace tessera::gui {

struct TimePicture {
  TimeAxis axis;  // of the pixels where time is, right of names or a scale
  int width = 1;  // of them
  QSize size;     // of all
  QPalette palette;
  QFont font;
  std::optional<double> moment;  // ns, that is shown
};

/// What is written in pictures.
QFont smallOf(const QFont& font);

/// Ticks with their times above a line, in the painter's font. The axis begins at the left of the
/// place.
void paintRuler(QPainter& painter, const TimeAxis& axis, const QRect& place, const QColor& text);

/// A line through the place, if the moment is in sight. The axis begins at the left of the place.
void paintMoment(QPainter& painter, const TimePicture& picture, const QRect& place);

/// Why there is nothing else to see.
void paintWhy(QPainter& painter, const QRect& place, const QPalette& palette, const QString& why);

}  // namespace tessera::gui
