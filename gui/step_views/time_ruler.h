// SPDX-License-Identifier: GPL-3.0-or-later
// The ticks of a time axis with their times, above a line. Pure drawing in the painter's font.
#pragma once

#include <QColor>
#include <QPainter>
#include <QRect>

#include "gui/timeline/time_axis.h"

namespace tessera::gui {

/// The axis begins at the left of the place.
void paintRuler(QPainter& painter, const TimeAxis& axis, const QRect& place, const QColor& text);

}  // namespace tessera::gui
