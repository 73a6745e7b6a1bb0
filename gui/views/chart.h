// SPDX-License-Identifier: GPL-3.0-or-later
// A QCustomPlot in the window's style: lines over steps, stacked bars, and bars placed in time.
//
// Every show*() replaces what the chart held; what the user zoomed to stays until fit(). Colours of
// axes and text follow the palette. Drag and arrows pan, the wheel, plus and minus zoom, a double
// click and Home fit.
#pragma once

#include <qcustomplot.h>

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace tessera::gui {

struct ChartLine {
  QString name;
  QColor colour;
  std::vector<QPointF> points;
  bool dashed = false;
  /// So many points that they fill an area: wide, smooth strokes over it would take seconds.
  bool isDense() const { return points.size() > 1000; }
};

struct ChartStack {
  QString name;
  QColor colour;
  std::vector<double> values;  // by category
};

struct ChartBars {
  QString name;
  QColor colour;
  std::vector<double> values, errors;  // by category; an error is drawn to both sides
};

struct ChartSpan {
  int lane = 0;
  double start = 0, length = 0;
  QString label;
  QColor colour;
  bool chosen = false;
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
  /// Horizontal bars with error bars, those of a category below one another.
  void showBeside(const QString& unit, const QStringList& categories,
                  const std::vector<ChartBars>& bars);
  /// Vertical bars at the given positions, e.g. one per step.
  void showColumns(const QString& unit, const std::vector<double>& positions,
                   const std::vector<ChartStack>& stacks);
  /// Lanes from the top, bars within them.
  void showSpans(const QString& unit, const QStringList& lanes, const std::vector<ChartSpan>& spans,
                 double end);
  /// Nothing but a line of text: why there is nothing.
  void showNothing(const QString& why);
  /// All is in sight, from now on too.
  void fit();
  /// The user chose no other ranges.
  bool isFitted() const { return fitted_; }

  QSize sizeHint() const override { return {420, 240}; }
  QSize minimumSizeHint() const override { return {220, 130}; }
  /// What pointing there tells: a text that is drawn shortened, what a span is, or what colours
  /// mean where the legend had no room; empty = nothing.
  QString hintAt(const QPoint& at) const;

 protected:
  void changeEvent(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  bool event(QEvent* event) override;

  /// Begins a show*(): nothing is left of what there was.
  void reset();
  /// Colours of what a show*() draws that follow the palette: set now, and when it changes.
  void ink(std::function<void()> colour) {
    colour();
    inks_.push_back(std::move(colour));
  }
  void addLegend();
  /// `points`: ascending.
  static void setPoints(QCPGraph& graph, const std::vector<QPointF>& points) {
    QVector<QCPGraphData> data;
    data.reserve(static_cast<int>(points.size()));
    for (const QPointF& point : points) data.append({point.x(), point.y()});
    graph.data()->set(data, true);
  }
  /// Of the axes.
  void setLabels(const QString& x, const QString& y);
  /// Ends a show*(): ranges by `ranges` unless the user chose others.
  void finish(std::function<void()> ranges);

 private:
  void applyPalette();
  void fitTexts();
  void fitLegend();
  QString coloursHint() const;
  void addLegendBelow(int categories, int above);
  void layOut();
  void drawLimit(double limit, const QString& text, double end, bool over);
  QFont limitFont() const;
  QCPBars* addStack(QCPAxis* key, QCPAxis* value, const ChartStack& stack, QCPBars* under);
  void setRanges();
  void setEmptyRanges();

  static constexpr double kSpanHalf = 0.36;  // of a lane

  QString title_text_, x_label_, y_label_;                // in full
  std::map<const QCPAbstractPlottable*, QString> names_;  // of the legend, in full
  std::vector<ChartSpan> spans_;                          // that are drawn
  QCPTextElement* title_ = nullptr;                       // none where the title is empty
  bool legend_below_ = false;
  bool legend_tight_ = false;  // it gives way to the bars
  std::vector<std::function<void()>> inks_;
  std::function<void()> ranges_;  // that show all of it
  std::function<void()> again_;   // draws it for another size; empty = that changes nothing
  bool fitted_ = true;            // the user chose no others
  bool setting_ = false;          // they are set by the chart itself
};

}  // namespace tessera::gui
