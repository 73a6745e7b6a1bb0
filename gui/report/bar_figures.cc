// SPDX-License-Identifier: GPL-3.0-or-later
// Pictures of bars: in time, stacked, beside one another.
#include <algorithm>
#include <cmath>

#include "gui/document/text.h"
#include "gui/models/colours.h"
#include "gui/report/figure.h"
#include "gui/report/figure_frame.h"

namespace tessera::gui {
namespace {

constexpr double kBarsWidth = 760, kBarsMargin = 20, kAxisHeight = 26;
constexpr double kLetter = 6.6;  // about the width of one, for what has room where

// Sums stay finite, too.
double finite(double value) { return std::isfinite(value) ? std::clamp(value, -1e300, 1e300) : 0; }

double error_at(const FigureSeries& series, std::size_t at) {
  return at < series.errors.size() ? finite(series.errors[at]) : 0;
}

QString value_text(const QString& series, const QString& category, const QString& value) {
  return series + ", " + category + ": " + value;
}

std::vector<std::pair<QString, QColor>> legend_of(const std::vector<FigureSeries>& series) {
  std::vector<std::pair<QString, QColor>> legend;
  for (const FigureSeries& each : series) legend.emplace_back(each.name, each.colour);
  return legend;
}

/// The room that names of categories take at the left.
double name_width(const QStringList& names) {
  qsizetype longest = 4;
  for (const QString& name : names) longest = std::max(longest, name.size());
  return std::min(220.0, kLetter * static_cast<double>(longest) + kBarsMargin);
}

void add_errors(Markup& to, const ValueAxis& axis, double y, double value, double error) {
  const double from = axis.at(value - error), until = axis.at(value + error);
  add_line(to, from, y, until, y, "error");
  add_line(to, from, y - 3, from, y + 3, "error");
  add_line(to, until, y - 3, until, y + 3, "error");
}

}  // namespace

void draw_spans(Markup& to, const QString& title, const QStringList& lanes,
                const std::vector<FigureSpan>& spans, double end) {
  constexpr double kLane = 62, kSpan = 36;
  const double height =
      kLane * static_cast<double>(std::max<qsizetype>(1, lanes.size())) + kAxisHeight;
  const ValueAxis axis{0, end > 0 && std::isfinite(end) ? end : 1, kBarsMargin,
                       kBarsWidth - 2 * kBarsMargin};
  open_figure(to, title, kBarsWidth, height);
  add_grid(to, axis, 0, height - kAxisHeight, second_number);
  for (int lane = 0; lane < lanes.size(); ++lane) {
    add_label(to, kBarsMargin, kLane * lane + 16, lanes[lane], "name");
  }
  for (const FigureSpan& span : spans) {
    const double x = axis.at(finite(span.start)), y = kLane * span.lane + 22;
    const double width = axis.at(finite(span.start) + finite(span.length)) - x;
    add_box(to, x, y, width, kSpan, span.colour, span.detail);
    if (kLetter * static_cast<double>(span.label.size()) + 6 > width) continue;
    const bool dark = textOn(span.colour) == QColor(Qt::black);
    add_label(to, x + width / 2, y + kSpan / 2 + 4, span.label,
              dark ? "on-light middle" : "on-dark middle");
  }
  close_figure(to, {});
}

void draw_stacks(Markup& to, const QString& title, FigureUnit unit, const QStringList& categories,
                 const std::vector<FigureSeries>& series, const std::optional<FigureLimit>& limit) {
  constexpr double kRow = 26, kTop = 20;
  double most = limit ? limit->value : 0;
  for (std::size_t row = 0; row < static_cast<std::size_t>(categories.size()); ++row) {
    double total = 0;
    for (const FigureSeries& each : series) total += finite(each.values[row]);
    most = std::max(most, total);
  }
  const double height = kTop + kRow * static_cast<double>(categories.size()) + kAxisHeight;
  const double left = name_width(categories);
  const ValueAxis axis{0, most > 0 ? 1.02 * most : 1, left, kBarsWidth - 2 * kBarsMargin};
  open_figure(to, title, kBarsWidth, height);
  add_grid(to, axis, kTop, height - kAxisHeight, unit);
  for (int row = 0; row < categories.size(); ++row) {
    const double y = kTop + kRow * row;
    add_label(to, left - 6, y + kRow / 2 + 4, categories[row], "name end");
    double sum = 0;
    for (const FigureSeries& each : series) {
      const double value = finite(each.values[static_cast<std::size_t>(row)]);
      if (value <= 0) continue;
      const double x = axis.at(sum);
      sum += value;
      add_box(to, x, y + 3, axis.at(sum) - x, kRow - 6, each.colour,
              value_text(each.name, categories[row], unit(value)));
    }
  }
  if (limit) {
    const double x = axis.at(limit->value);
    add_line(to, x, kTop - 4, x, height - kAxisHeight, "limit");
    add_label(to, x - 4, kTop - 7, limit->label, "tick end");
  }
  close_figure(to, legend_of(series));
}

void draw_beside(Markup& to, const QString& title, FigureUnit unit, const QStringList& categories,
                 const std::vector<FigureSeries>& series) {
  constexpr double kBar = 11, kApart = 8;
  double most = 0;
  for (const FigureSeries& each : series) {
    for (std::size_t i = 0; i < each.values.size(); ++i) {
      most = std::max(most, finite(each.values[i]) + error_at(each, i));
    }
  }
  const double row_height = kBar * static_cast<double>(series.size()) + kApart;
  const double height = row_height * static_cast<double>(categories.size()) + kAxisHeight;
  const double left = name_width(categories);
  const ValueAxis axis{0, most > 0 ? 1.03 * most : 1, left, kBarsWidth - 2 * kBarsMargin};
  open_figure(to, title, kBarsWidth, height);
  add_grid(to, axis, 0, height - kAxisHeight, unit);
  for (int row = 0; row < categories.size(); ++row) {
    const double top = row_height * row;
    add_label(to, left - 6, top + row_height / 2 + 4, categories[row], "name end");
    for (std::size_t s = 0; s < series.size(); ++s) {
      const double y = top + kApart / 2 + kBar * static_cast<double>(s);
      const auto at = static_cast<std::size_t>(row);
      const double value = finite(series[s].values[at]), error = error_at(series[s], at);
      const QString said = unit(value) + (error > 0 ? " +- " + unit(error) : QString());
      add_box(to, left, y, axis.at(value) - left, kBar - 1, series[s].colour,
              value_text(series[s].name, categories[row], said));
      if (error > 0) add_errors(to, axis, y + kBar / 2, value, error);
    }
  }
  close_figure(to, legend_of(series));
}

}  // namespace tessera::gui
