// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/run_views/metric_chart.h"

#include "gui/document/words.h"
#include "gui/metrics/smoothing.h"

namespace tessera::gui {
namespace {

constexpr float kFaint = 0.35F;

}  // namespace

MetricChart::MetricChart(const QString& metric, QWidget* parent) : StepChart(metric, parent) {}

void MetricChart::showRuns(const std::vector<ChartLine>& lines, double smoothing) {
  setLines(lines);
  drawn_ = lines;
  for (ChartLine& line : drawn_) {
    if (!line.dashed) line.points = smoothed(line.points, smoothing);
  }
  showLines({}, drawn_);
  if (smoothing > 0) addFaintLines();
}

// What was measured, below the smoothed lines; it has their names.
void MetricChart::addFaintLines() {
  for (const ChartLine& line : lines()) {
    if (line.dashed) continue;
    QCPGraph* graph = addGraph();
    graph->removeFromLegend();
    graph->setLayer("grid");
    QColor faint = line.colour;
    faint.setAlphaF(kFaint);
    graph->setPen(QPen(faint, 1));
    graph->setAntialiased(!line.isDense());
    setPoints(*graph, line.points);
  }
  isFitted() ? fit() : replot(rpQueuedRefresh);
}

QString MetricChart::valueText(std::size_t line, std::size_t point) const {
  const double measured = lines()[line].points[point].y(), smooth = drawn_[line].points[point].y();
  QString text = QString::number(measured, 'g', 6);
  if (smooth != measured) text += Words::tr(", smoothed %1").arg(smooth, 0, 'g', 6);
  return text;
}

}  // namespace tessera::gui
