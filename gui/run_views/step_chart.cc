// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/run_views/step_chart.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "gui/document/words.h"
#include "gui/metrics/smoothing.h"

namespace tessera::gui {
namespace {

constexpr int kApart = 6, kPadding = 4;  // pixels, of the crosshair's text

}  // namespace

StepChart::StepChart(const QString& title, QWidget* parent) : Chart(title, parent) {}

void StepChart::showSteps(const QString& unit, const std::vector<ChartLine>& lines,
                          bool from_zero) {
  setLines(lines);
  showLines(unit, lines, from_zero);
}

void StepChart::showStepColumns(const QString& unit, const std::vector<double>& steps,
                                const std::vector<ChartStack>& stacks) {
  std::vector<ChartLine> lines;
  for (const ChartStack& stack : stacks) {
    ChartLine line{stack.name, stack.colour, {}};
    const std::size_t count = std::min(steps.size(), stack.values.size());
    for (std::size_t i = 0; i < count; ++i) line.points.emplace_back(steps[i], stack.values[i]);
    lines.push_back(std::move(line));
  }
  setLines(lines);
  showColumns(unit, steps, stacks);
}

void StepChart::point(std::optional<double> step) {
  if (step == step_) return;
  step_ = step;
  update();
}

std::optional<double> StepChart::pointed() const {
  if (!step_ || lines_.empty()) return std::nullopt;
  const std::vector<QPointF>& points = lines_.front().points;
  const auto at = nearest(points, *step_);
  return at ? points[*at].x() : *step_;
}

QString StepChart::valueText(std::size_t line, std::size_t point) const {
  return QString::number(lines_[line].points[point].y(), 'g', 4);
}

QStringList StepChart::said() const {
  const auto step = pointed();
  if (!step) return {};
  QStringList said{Words::tr("step %1").arg(*step)};
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const auto at = nearest(lines_[i].points, *step);
    if (!at || lines_[i].dashed || lines_[i].points[*at].x() != *step) continue;
    said << QString("%1  %2").arg(lines_[i].name, valueText(i, *at));
  }
  return said;
}

QRect StepChart::textBox() const {
  const QSize text = fontMetrics().size(0, said().join('\n'));
  const int x = static_cast<int>(xAxis->coordToPixel(pointed().value_or(0)));
  return freest(text + QSize(2 * kPadding, 2 * kPadding), x, kApart);
}

// Beside the step, where it covers the least of the lines: on its right or left, up or down.
QRect StepChart::freest(QSize size, int x, int apart) const {
  const QRect room = axisRect()->rect();
  const int right = x + apart, left = x - apart - size.width();
  const int top = room.top() + apart, bottom = room.bottom() - apart - size.height();
  std::optional<QRect> best;
  std::size_t least = 0;
  for (const QPoint corner :
       {QPoint(right, top), QPoint(left, top), QPoint(right, bottom), QPoint(left, bottom)}) {
    const QRect box(corner, size);
    if (box.left() < room.left() || box.right() > room.right() || box.top() < top) continue;
    const std::size_t covered = drawnIn(box);
    if (best && covered >= least) continue;
    best = box;
    least = covered;
  }
  if (best) return *best;
  QRect box({right + size.width() <= room.right() ? right : std::max(room.left(), left), top},
            size);
  box.moveTop(std::clamp(height() - box.height(), 0, box.top()));  // all of it is in sight
  return box;
}

// Columns of pixels in which a line runs through the box.
std::size_t StepChart::drawnIn(const QRect& box) const {
  std::size_t columns = 0;
  for (const ChartLine& line : lines_) {
    for (int x = box.left(); x <= box.right(); ++x) {
      const double step = xAxis->pixelToCoord(x);
      const auto after = std::ranges::lower_bound(line.points, step, {}, &QPointF::x);
      if (after == line.points.begin() || after == line.points.end()) continue;
      const QPointF before = *std::prev(after);
      const double part = (step - before.x()) / (after->x() - before.x());
      const double value = before.y() + part * (after->y() - before.y());
      const double y = yAxis->coordToPixel(value);
      if (y >= box.top() && y <= box.bottom()) ++columns;
    }
  }
  return columns;
}

void StepChart::paintEvent(QPaintEvent* event) {
  Chart::paintEvent(event);
  const QStringList texts = said();
  const auto step = pointed();
  if (texts.isEmpty() || !xAxis->range().contains(*step)) return;
  QPainter painter(this);
  const QRect room = axisRect()->rect();
  const int x = static_cast<int>(xAxis->coordToPixel(*step));
  painter.setPen(QPen(palette().color(QPalette::Text), 1, Qt::DotLine));
  painter.drawLine(x, room.top(), x, room.bottom());
  const QRect box = textBox();
  QColor base = palette().color(QPalette::Base);
  base.setAlphaF(0.9F);
  painter.fillRect(box, base);
  painter.setPen(palette().color(QPalette::Text));
  painter.drawText(box.adjusted(kPadding, kPadding, 0, 0), Qt::AlignLeft | Qt::AlignTop,
                   texts.join('\n'));
}

void StepChart::mouseMoveEvent(QMouseEvent* event) {
  Chart::mouseMoveEvent(event);
  const QPoint at = event->position().toPoint();
  if (axisRect()->rect().contains(at)) {
    emit pointedTo(xAxis->pixelToCoord(at.x()));
  } else {
    emit pointedTo(std::nullopt);
  }
}

void StepChart::leaveEvent(QEvent* event) {
  Chart::leaveEvent(event);
  emit pointedTo(std::nullopt);
}

void StepChart::keyPressEvent(QKeyEvent* event) {
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
