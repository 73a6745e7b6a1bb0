// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/step_views/time_canvas.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "gui/timeline/zoom_keys.h"

namespace tessera::gui {
namespace {

constexpr int kClick = 4;  // pixels that a click may move

}  // namespace

TimeCanvas::TimeCanvas(const QString& name, int left, QWidget* parent)
    : QWidget(parent), left_(left) {
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAccessibleName(name);
}

void TimeCanvas::setEnd(double end_ns) {
  end_ns_ = end_ns;
  kept_.reset();
  fitAll();
  moved();
}

void TimeCanvas::setWhy(const QString& why) {
  why_ = why;
  update();
}

void TimeCanvas::setAxis(const TimeAxis& axis) {
  if (end_ns_ > 0) axis_ = bounded(axis, end_ns_, timeWidth());
  update();
}

void TimeCanvas::fitAll() {
  fitted_ = true;
  setAxis(fitted(0, end_ns_, timeWidth()));
}

void TimeCanvas::fitChosen() {
  const auto time = chosenTime();
  if (!time) return fitAll();
  fitted_ = false;
  const double margin = 0.04 * (time->second - time->first);
  setAxis(fitted(time->first - margin, time->second + margin, timeWidth()));
}

std::optional<double> TimeCanvas::timeUnder(QPoint point) const {
  const int x = point.x() - left_;
  if (end_ns_ <= 0 || x < 0 || x >= timeWidth() || !rect().contains(point)) return std::nullopt;
  return std::min(axis_.time_at(x + 0.5), std::nextafter(end_ns_, 0));
}

std::optional<double> TimeCanvas::moment() const {
  const auto under = timeUnder(pointer_);
  return under ? under : kept_;
}

void TimeCanvas::keep(std::optional<double> ns) {
  kept_ = ns;
  moved();
}

void TimeCanvas::moved() {
  const auto now = moment();
  setAccessibleDescription(now ? says(*now) : QString());
  update();
  emit momentChanged();
}

// Where the pointer is, else where what was kept is, else in the middle.
void TimeCanvas::zoom(double factor) {
  fitted_ = false;
  const auto at = moment();
  const double x = at ? axis_.x_of(*at) : -1;
  setAxis(zoomed(axis_, factor, x >= 0 && x < timeWidth() ? x : timeWidth() / 2.0));
}

void TimeCanvas::pan(double pixels) {
  fitted_ = false;
  setAxis(panned(axis_, pixels));
}

// The pointer gives way to the keys until it moves again.
void TimeCanvas::stepTo(int step) {
  const auto now = moment();
  pointer_ = {-1, -1};
  kept_ = now ? nextMoment(*now, step) : nextMoment(axis_.start_ns, 1);
  const double x = axis_.x_of(*kept_);
  if (x < 0 || x >= timeWidth()) pan(x - timeWidth() / 2.0);
  moved();
}

void TimeCanvas::keyPressEvent(QKeyEvent* event) {
  const bool plain = (event->modifiers() & ~Qt::KeypadModifier & ~Qt::ShiftModifier) == 0;
  const int key = plain && end_ns_ > 0 ? event->key() : int{Qt::Key_unknown};
  if (const double factor = zoomOf(key); factor != 1) return zoom(factor);
  if (const double share = panOf(key); share != 0) return pan(share * timeWidth());
  switch (key) {
    case Qt::Key_F:
      return fitChosen();
    case Qt::Key_Home:
      return fitAll();
    case Qt::Key_Period:
      return stepTo(1);
    case Qt::Key_Comma:
      return stepTo(-1);
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (const auto now = moment()) emit entered(*now);
      return;
    default:
      QWidget::keyPressEvent(event);
  }
}

void TimeCanvas::wheelEvent(QWheelEvent* event) {
  if (event->angleDelta().y() == 0) return QWidget::wheelEvent(event);
  pointer_ = event->position().toPoint();
  zoom(zoomOfWheel(event->angleDelta().y()));
  event->accept();
}

void TimeCanvas::mousePressEvent(QMouseEvent* event) {
  from_ = event->pos();
  drag_ = Drag::pressed;
}

void TimeCanvas::mouseMoveEvent(QMouseEvent* event) {
  const QPoint before = std::exchange(pointer_, event->pos());
  if (drag_ == Drag::pressed && (pointer_ - from_).manhattanLength() > kClick) drag_ = Drag::pan;
  if (drag_ == Drag::pan) pan(before.x() - pointer_.x());
  moved();
}

void TimeCanvas::mouseReleaseEvent(QMouseEvent* event) {
  if (std::exchange(drag_, Drag::none) != Drag::pressed) return;
  const auto under = timeUnder(event->pos());
  if (!under) return;
  keep(under);
  emit entered(*under);
}

void TimeCanvas::mouseDoubleClickEvent(QMouseEvent*) { fitChosen(); }

void TimeCanvas::leaveEvent(QEvent*) {
  pointer_ = {-1, -1};
  moved();
}

bool TimeCanvas::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const auto under = timeUnder(help->pos());
  QToolTip::showText(help->globalPos(), under ? says(*under) : QString(), this);
  return true;
}

void TimeCanvas::resizeEvent(QResizeEvent*) { fitted_ ? fitAll() : setAxis(axis_); }

void TimeCanvas::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  if (empty()) return paintWhy(painter, rect(), palette(), why_);
  draw(painter, {axis_, timeWidth(), size(), palette(), font(), moment()});
}

}  // namespace tessera::gui
