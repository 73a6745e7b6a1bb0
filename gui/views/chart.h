// SPDX-License-Identifier: GPL-3.0-or-later
// A QCustomPlot in the window's style: lines over steps, stacked bars, and bars placed in time.
//
// Every show*() replaces what the chart held. Colours of axes and text follow the palette. Drag
// pans, the wheel zooms, a double click fits.
#pragma once

#include <qcustomplot.h>

#include <optional>
#include <vector>

namespace tessera::gui {

struct ChartLine {
  QString name;
  QColor colour;
  std::vector<QPointF> points;
  bool dashed = false;
};

struct ChartStack {
  QString name;
  QColor colour;
  std::vector<double> values;  // by category
};

struct ChartSpan {
  int lane = 0;
  double start = 0, length = 0;
  QString label;
  QColor colour;
};

class Chart : public QCustomPlot {
  Q_OBJECT

 public:
  explicit Chart(const QString& title, QWidget* parent = nullptr);

  void showLines(const QString& unit, const std::vector<ChartLine>& lines, bool from_zero = false);
  /// Horizontal bars, one per category from the top; `limit` is a dashed line with its label.
  void showBars(const QString& unit, const QStringList& categories,
                const std::vector<ChartStack>& stacks, std::optional<double> limit,
                const QString& limit_label);
  /// Vertical bars at the given positions, e.g. one per step.
  void showColumns(const QString& unit, const std::vector<double>& positions,
                   const std::vector<ChartStack>& stacks);
  /// Lanes from the top, bars within them.
  void showSpans(const QString& unit, const QStringList& lanes, const std::vector<ChartSpan>& spans,
                 double end);

  QSize sizeHint() const override { return {420, 240}; }
  QSize minimumSizeHint() const override { return {220, 130}; }

 protected:
  void changeEvent(QEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;

 private:
  void reset();
  void applyPalette();
  void addLegend(bool below);
  QCPBars* addStack(QCPAxis* key, QCPAxis* value, const ChartStack& stack, QCPBars* under);
  void finish();

  QCPTextElement* title_;
  QCPLegend* legend_below_ = nullptr;
};

}  // namespace tessera::gui
