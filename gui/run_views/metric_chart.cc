// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/run_views/metric_chart.h"

#include <algorithm>

#include "gui/document/words.h"
#include "gui/metrics/smoothing.h"

namespace tessera::gui {
namespace {

constexpr float kFaint = 0.35F;

}  // namespace

MetricChart::MetricChart(const QString& metric, QWidget* parent) : Chart(metric, parent) {}

void MetricChart::showRuns(const std::vector<ChartLine>& lines, double smoothing) {
  lines_ = drawn_ = lines;
  for (ChartLine& line : drawn_) {
    if (!line.dashed) line.points = smoothed(line.points, smoothing);
  }
  showLines({}, drawn_);
  if (smoothing > 0) addFaintLines();
}

// What was measured, below the smoothed lines; it has their names.
void MetricChart::addFaintLines() {
  for (const ChartLine& line : lines_) {
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

void MetricChart::point(std::optional<double> step) {
  if (step == step_) return;
  step_ = step;
  update();
}

std::optional<double> MetricChart::pointed() const {
  if (!step_ || lines_.empty()) return std::nullopt;
  const std::vector<QPointF>& points = lines_.front().points;
  const auto at = nearest(points, *step_);
  return at ? points[*at].x() : *step_;
}

QStringList MetricChart::said() const {
  const auto step = pointed();
  if (!step) return {};
  QStringList said{Words::tr("step %1").arg(*step)};
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const auto at = nearest(lines_[i].points, *step);
    if (!at || lines_[i].dashed || lines_[i].points[*at].x() != *step) continue;
    const double measured = lines_[i].points[*at].y(), smooth = drawn_[i].points[*at].y();
    QString text = QString("%1  %2").arg(lines_[i].name).arg(measured, 0, 'g', 6);
    if (smooth != measured) text += Words::tr(", smoothed %1").arg(smooth, 0, 'g', 6);
    said << text;
  }
  return said;
}

void MetricChart::paintEvent(QPaintEvent* event) {
  Chart::paintEvent(event);
  const QStringList texts = said();
  const auto step = pointed();
  if (texts.isEmpty() || !xAxis->range().contains(*step)) return;
  QPainter painter(this);
  const QRect room = axisRect()->rect();
  const int x = static_cast<int>(xAxis->coordToPixel(*step));
  painter.setPen(QPen(palette().color(QPalette::Text), 1, Qt::DotLine));
  painter.drawLine(x, room.top(), x, room.bottom());
  const QString text = texts.join('\n');
  constexpr int kApart = 6, kPadding = 4;
  QRect box({}, fontMetrics().size(0, text) + QSize(2 * kPadding, 2 * kPadding));
  const bool right = x + kApart + box.width() <= room.right();
  box.moveTopLeft(
      {right ? x + kApart : std::max(room.left(), x - kApart - box.width()), room.top() + kApart});
  QColor base = palette().color(QPalette::Base);
  base.setAlphaF(0.9F);
  painter.fillRect(box, base);
  painter.setPen(palette().color(QPalette::Text));
  painter.drawText(box.adjusted(kPadding, kPadding, 0, 0), Qt::AlignLeft | Qt::AlignTop, text);
}

void MetricChart::mouseMoveEvent(QMouseEvent* event) {
  Chart::mouseMoveEvent(event);
  const QPoint at = event->position().toPoint();
  if (axisRect()->rect().contains(at)) {
    emit pointedTo(xAxis->pixelToCoord(at.x()));
  } else {
    emit pointedTo(std::nullopt);
  }
}

void MetricChart::leaveEvent(QEvent* event) {
  Chart::leaveEvent(event);
  emit pointedTo(std::nullopt);
}

void MetricChart::keyPressEvent(QKeyEvent* event) {
  const bool next = event->key() == Qt::Key_Period, back = event->key() == Qt::Key_Comma;
  if ((!next && !back) || lines_.empty() || lines_.front().points.empty()) {
    return Chart::keyPressEvent(event);
  }
  const std::vector<QPointF>& points = lines_.front().points;
  const auto now = pointed();
  std::size_t at = now ? *nearest(points, *now) : points.size() - 1;
  if (now && next) at = std::min(at + 1, points.size() - 1);
  if (now && back && at > 0) --at;
  emit pointedTo(points[at].x());
}

}  // namespace tessera::gui
