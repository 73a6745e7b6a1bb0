// SPDX-License-Identifier: GPL-3.0-or-later
// What pictures of a report have in common: the frame, its axes, its legend. Units: those of the
// picture's own coordinates, a pixel where the page shows it at its size.
#pragma once

#include <QString>
#include <utility>
#include <vector>

#include "gui/report/figure.h"

namespace tessera::gui {

/// Opens <figure><svg>, with room for what is drawn into width x height.
void open_figure(Markup& to, const QString& title, double width, double height);
/// Closes the picture and adds what its colours mean.
void close_figure(Markup& to, const std::vector<std::pair<QString, QColor>>& legend);

QString coordinate_text(double value);
/// A filled box that says `detail`.
void add_box(Markup& to, double x, double y, double width, double height, const QColor& colour,
             const QString& detail);
void add_line(Markup& to, double x1, double y1, double x2, double y2, const char* css_class);
void add_label(Markup& to, double x, double y, const QString& text, const char* css_class);

/// A horizontal axis of values below a picture: `top` to `bottom` are the grid's ends.
struct ValueAxis {
  double low = 0, high = 1;      // values
  double left = 0, right = 100;  // where they are
  double at(double value) const;
};
/// Round in the unit: bytes in powers of 1,024.
std::vector<double> ticks_of(double low, double high, int most, FigureUnit unit);
void add_grid(Markup& to, const ValueAxis& axis, double top, double bottom, FigureUnit unit);

}  // namespace tessera::gui
