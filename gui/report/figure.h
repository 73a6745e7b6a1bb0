// SPDX-License-Identifier: GPL-3.0-or-later
// Pictures of a report as SVG within the page: bars in time, stacked bars, lines over steps.
//
// Text and axes take their colours from the page, so that one picture serves light and dark. What a
// shape stands for it says when it is pointed to. Pure: numbers that are not finite are left out.
#pragma once

#include <QColor>
#include <QPointF>
#include <QString>
#include <QStringList>
#include <optional>
#include <vector>

#include "gui/report/markup.h"

namespace tessera::gui {

/// A bar in a lane. `label` stands in it where there is room, `detail` is said of it.
struct FigureSpan {
  int lane = 0;
  double start = 0, length = 0;
  QString label, detail;
  QColor colour;
};

/// What a picture has of one kind; a value a category or position.
struct FigureSeries {
  QString name;
  QColor colour;
  std::vector<double> values;
  std::vector<double> errors = {};  // to both sides; empty = none
};

struct FigureLimit {
  double value = 0;
  QString label;
};

struct FigureLine {
  QString name;
  QColor colour;
  std::vector<QPointF> points;
  bool dashed = false;
};

/// How numbers are written along an axis.
using FigureUnit = QString (*)(double value);
QString plain_number(double value);
QString second_number(double seconds);
QString byte_number(double bytes);

/// Lanes from the top, bars in them from 0 to `end` seconds.
void draw_spans(Markup& to, const QString& title, const QStringList& lanes,
                const std::vector<FigureSpan>& spans, double end);
/// Horizontal bars, the series of a category behind one another; the limit is a dashed line.
void draw_stacks(Markup& to, const QString& title, FigureUnit unit, const QStringList& categories,
                 const std::vector<FigureSeries>& series, const std::optional<FigureLimit>& limit);
/// Horizontal bars with their errors, the series of a category below one another.
void draw_beside(Markup& to, const QString& title, FigureUnit unit, const QStringList& categories,
                 const std::vector<FigureSeries>& series);
/// Vertical stacked bars from `first` to `last` of the axis below, e.g. steps.
void draw_columns(Markup& to, const QString& title, FigureUnit unit, double first, double last,
                  const std::vector<FigureSeries>& series);
/// Lines over steps. Of many points that share a pixel the lowest and the highest are drawn.
void draw_lines(Markup& to, const QString& title, FigureUnit unit,
                const std::vector<FigureLine>& lines);

/// Values of an axis that are round, within low to high, with at most `most` steps between them.
std::vector<double> round_ticks(double low, double high, int most);

}  // namespace tessera::gui
