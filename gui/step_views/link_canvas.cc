// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/step_views/link_canvas.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <algorithm>
#include <utility>

#include "gui/document/words.h"

namespace tessera::gui {

LinkCanvas::LinkCanvas(QWidget* parent)
    : TimeCanvas(Words::tr("Load of links over the simulated step"), LinkPicture::kNames, parent) {}

void LinkCanvas::setIndex(std::shared_ptr<const TimelineIndex> index, const QString& why) {
  setWhy(why);
  if (index == index_) return;
  index_ = std::move(index);
  picture_.steps = index_ ? link_steps_of(*index_) : LinkSteps{};
  picture_.first = 0;
  picture_.lane = steps().empty() ? -1 : 0;
  setEnd(static_cast<double>(steps().empty() ? 0 : steps().end_ns));
}

void LinkCanvas::look(const ViewState& view) {
  picture_.phase = view.phase;
  const bool other = std::exchange(picture_.rank, view.rank) != view.rank;
  update();
  if (!other || view.rank < 0) return;
  const auto& lanes = steps().lanes;
  const auto theirs = [&](const LinkLane& lane) { return carries(lane, view.rank); };
  const auto [from, to] = picture_.lanes();
  const auto at = [&](std::size_t lane) {
    return lanes.begin() + static_cast<std::ptrdiff_t>(lane);
  };
  if (std::any_of(at(from), at(to), theirs)) return;
  const auto first = std::find_if(lanes.begin(), lanes.end(), theirs);
  if (first != lanes.end()) bringIntoSight(static_cast<std::size_t>(first - lanes.begin()));
}

// The size counts before anything is drawn.
void LinkCanvas::measure() { picture_.size = size(); }

void LinkCanvas::scrollTo(std::ptrdiff_t first) {
  measure();
  const auto last = std::ssize(steps().lanes) - static_cast<std::ptrdiff_t>(picture_.room());
  picture_.first = static_cast<std::size_t>(
      std::clamp<std::ptrdiff_t>(first, 0, std::max<std::ptrdiff_t>(0, last)));
  update();
}

void LinkCanvas::bringIntoSight(std::size_t lane) {
  measure();
  const auto [from, to] = picture_.lanes();
  if (lane < from) scrollTo(static_cast<std::ptrdiff_t>(lane));
  if (lane >= to) {
    scrollTo(static_cast<std::ptrdiff_t>(lane + 1) - static_cast<std::ptrdiff_t>(picture_.room()));
  }
}

void LinkCanvas::goTo(int lane) {
  if (steps().empty()) return;
  picture_.lane = std::clamp(lane, 0, static_cast<int>(steps().lanes.size()) - 1);
  bringIntoSight(static_cast<std::size_t>(picture_.lane));
  moved();
}

void LinkCanvas::draw(QPainter& painter, const TimePicture& at) {
  static_cast<TimePicture&>(picture_) = at;
  paint(painter, picture_);
}

double LinkCanvas::nextMoment(double ns, int step) const {
  if (picture_.lane < 0) return ns;
  return next_change(steps(), static_cast<std::size_t>(picture_.lane), ns, step);
}

std::optional<std::pair<double, double>> LinkCanvas::chosenTime() const {
  if (steps().calls == nullptr) return std::nullopt;
  for (const CallSlack& call : *steps().calls) {
    if (call.phase == picture_.phase) {
      return std::pair(static_cast<double>(call.start_ns), static_cast<double>(call.end_ns));
    }
  }
  return std::nullopt;
}

QString LinkCanvas::says(double ns) const {
  if (picture_.lane < 0 || steps().empty()) return {};
  return describe(steps(), static_cast<std::size_t>(picture_.lane), ns);
}

void LinkCanvas::keyPressEvent(QKeyEvent* event) {
  const auto page = static_cast<std::ptrdiff_t>(picture_.room());
  const auto first = static_cast<std::ptrdiff_t>(picture_.first);
  switch (event->key()) {
    case Qt::Key_Up:
      return goTo(picture_.lane - 1);
    case Qt::Key_Down:
      return goTo(picture_.lane + 1);
    case Qt::Key_PageUp:
      return scrollTo(first - page);
    case Qt::Key_PageDown:
      return scrollTo(first + page);
    default:
      TimeCanvas::keyPressEvent(event);
  }
}

void LinkCanvas::mousePressEvent(QMouseEvent* event) {
  TimeCanvas::mousePressEvent(event);
  const int lane = picture_.laneAt(event->pos().y());
  if (lane >= 0) picture_.lane = lane;
  if (lane >= 0 && event->pos().x() < LinkPicture::kNames) emit laneClicked(lane);
}

void LinkCanvas::mouseMoveEvent(QMouseEvent* event) {
  const int lane = picture_.laneAt(event->pos().y());
  if (lane >= 0) picture_.lane = lane;
  TimeCanvas::mouseMoveEvent(event);
}

void LinkCanvas::resizeEvent(QResizeEvent* event) {
  TimeCanvas::resizeEvent(event);
  scrollTo(static_cast<std::ptrdiff_t>(picture_.first));
}

}  // namespace tessera::gui
