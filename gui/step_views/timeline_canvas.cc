// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/step_views/timeline_canvas.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QScrollBar>
#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <ranges>
#include <utility>

#include "gui/document/words.h"
#include "gui/step_views/time_painter.h"
#include "gui/timeline/span_text.h"
#include "gui/timeline/zoom_keys.h"
#include "gui/views/fixed_text.h"

namespace tessera::gui {
namespace {

constexpr int kDragPixels = 4;
constexpr double kReachPixels = 3;  // a span is not missed by less

}  // namespace

TimelineCanvas::TimelineCanvas(QWidget* parent) : QAbstractScrollArea(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setFrameShape(QFrame::NoFrame);
  setAccessibleName(Words::tr("Timeline of the simulated step"));
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  viewport()->setMouseTracking(true);
  setMinimumHeight(120);
}

void TimelineCanvas::setTimeline(std::shared_ptr<const TimelineIndex> timeline,
                                 const QString& why) {
  timeline_ = std::move(timeline);
  why_ = why;
  picture_.index = timeline_.get();
  picture_.span.reset();
  picture_.gap.reset();
  picture_.matches.clear();
  unfolded_.assign(timeline_ ? timeline_->groups.size() : 0, false);
  layRows();
  fitAll();
}

void TimelineCanvas::layRows() {
  picture_.rows.clear();
  picture_.area.reset();
  if (timeline_) picture_.rows = TimelinePicture::rowsOf(*timeline_, unfolded_);
  const int shown = viewport()->height() - TimelinePicture::kRuler;
  const int all = static_cast<int>(picture_.rows.size()) * TimelinePicture::kRow;
  verticalScrollBar()->setRange(0, std::max(0, all - shown));
  verticalScrollBar()->setSingleStep(TimelinePicture::kRow);
  verticalScrollBar()->setPageStep(std::max(1, shown));
  viewport()->update();
  emit areaChanged();
}

void TimelineCanvas::fold(int group, bool folded) {
  unfolded_[static_cast<std::size_t>(group)] = !folded;
  layRows();
}

void TimelineCanvas::setAxis(const TimeAxis& axis) {
  if (!timeline_) return;
  picture_.axis = bounded(axis, static_cast<double>(timeline_->end_ns), picture_.width());
  viewport()->update();
}

void TimelineCanvas::fitAll() {
  fitted_ = true;
  if (timeline_) setAxis(fitted(0, static_cast<double>(timeline_->end_ns), picture_.width()));
  viewport()->update();
}

void TimelineCanvas::fitChosen() {
  const auto chosen = picture_.chosenTime();
  if (!chosen) return fitAll();
  fitted_ = false;
  const auto [from, to] = *chosen;
  const double margin = 0.08 * static_cast<double>(to - from);
  setAxis(fitted(static_cast<double>(from) - margin, static_cast<double>(to) + margin,
                 picture_.width()));
}

// At the pointer where it is over the lanes, else in the middle.
void TimelineCanvas::zoom(double factor) {
  fitted_ = false;
  const int over = pointer_.x() - TimelinePicture::kNames;
  const bool inside = viewport()->rect().contains(pointer_) && over >= 0;
  setAxis(zoomed(picture_.axis, factor, inside ? over : picture_.width() / 2.0));
}

void TimelineCanvas::pan(double pixels) {
  fitted_ = false;
  setAxis(panned(picture_.axis, pixels));
}

void TimelineCanvas::setSearch(const QString& part) {
  picture_.matches.clear();
  if (timeline_) picture_.matches = matches_before(*timeline_, part.toStdString());
  viewport()->update();
}

std::size_t TimelineCanvas::matches() const {
  if (picture_.matches.empty()) return 0;
  std::size_t found = 0;
  for (const TimelineRow& row : picture_.rows) {
    found += picture_.matches[row.lane.last] - picture_.matches[row.lane.first];
  }
  return found;
}

void TimelineCanvas::goToMatch(int step) {
  if (matches() == 0) return;
  const auto key = [&](std::size_t i) { return std::pair(timeline_->start_ns(i), i); };
  const auto nearer = [&](std::size_t one, const std::optional<std::size_t>& than) {
    return !than || (step > 0 ? key(one) < key(*than) : key(one) > key(*than));
  };
  std::optional<std::size_t> next, outermost;  // outermost: where one begins anew
  for (const TimelineRow& row : picture_.rows) {
    const auto found =
        next_match(picture_.matches, row.lane, step > 0 ? row.lane.first : row.lane.last, step);
    if (!found) continue;
    if (nearer(*found, outermost)) outermost = found;
    if (!picture_.span) continue;
    // Spans of a lane are in the order of their keys.
    const auto spans = std::views::iota(row.lane.first, row.lane.last);
    const std::size_t at = *std::ranges::partition_point(spans, [&](std::size_t i) {
      return step > 0 ? key(i) <= key(*picture_.span) : key(i) < key(*picture_.span);
    });
    const auto behind = next_match(picture_.matches, row.lane, at, step);
    if (behind && nearer(*behind, next)) next = behind;
  }
  choose(next ? next : outermost);
}

int TimelineCanvas::rowOf(std::size_t span) const {
  for (std::size_t row = 0; row < picture_.rows.size(); ++row) {
    const Lane& lane = picture_.rows[row].lane;
    if (span >= lane.first && span < lane.last) return static_cast<int>(row);
  }
  return -1;
}

void TimelineCanvas::scrollTo(int row) {
  if (row < 0) return;
  const int top = row * TimelinePicture::kRow;
  const int shown = viewport()->height() - TimelinePicture::kRuler - TimelinePicture::kRow;
  QScrollBar* bar = verticalScrollBar();
  bar->setValue(std::clamp(bar->value(), std::min(top, top - shown), top));
}

void TimelineCanvas::choose(std::optional<std::size_t> span) {
  picture_.span = span;
  picture_.gap.reset();
  viewport()->update();
  if (!span) {
    emit chosen({});
    return;
  }
  scrollTo(rowOf(*span));
  const Span of = timeline_->span(*span);
  const double x = picture_.axis.x_of(static_cast<double>(of.start_ns));
  const double end = picture_.axis.x_of(static_cast<double>(of.end_ns));
  if (end < 0 || x > picture_.width()) {
    pan(x - picture_.width() / 3.0);
  }
  emit chosen({of.rank, of.phase});
}

void TimelineCanvas::look(const ViewState& view) {
  if (view == picture_.view) return;
  const bool other_rank = view.rank != picture_.view.rank;
  picture_.view = view;
  viewport()->update();
  if (!timeline_ || !other_rank || view.rank < 0) return;
  if (picture_.span && timeline_->span(*picture_.span).rank == view.rank) return;
  for (std::size_t row = 0; row < picture_.rows.size(); ++row) {
    const TimelineRow& at = picture_.rows[row];
    const std::vector<int>& ranks = timeline_->groups[static_cast<std::size_t>(at.group)].ranks;
    const bool here = at.folded ? std::binary_search(ranks.begin(), ranks.end(), view.rank)
                                : at.lane.rank == view.rank;
    if (here && at.first) {
      scrollTo(static_cast<int>(row));
      return;
    }
  }
}

std::optional<std::size_t> TimelineCanvas::spanAt(QPoint point) const {
  const int row = picture_.rowAt(point.y());
  if (!timeline_ || row < 0 || point.x() < TimelinePicture::kNames) return std::nullopt;
  return span_at(*timeline_, picture_.rows[static_cast<std::size_t>(row)].lane,
                 picture_.axis.time_at(point.x() - TimelinePicture::kNames + 0.5),
                 kReachPixels * picture_.axis.ns_per_pixel);
}

std::optional<LaneGap> TimelineCanvas::gapAt(QPoint point) const {
  const int row = picture_.rowAt(point.y());
  if (!timeline_ || row < 0 || point.x() < TimelinePicture::kNames) return std::nullopt;
  return gap_at(*timeline_, picture_.rows[static_cast<std::size_t>(row)].lane,
                picture_.axis.time_at(point.x() - TimelinePicture::kNames + 0.5));
}

// The neighbour of the chosen span in its lane; without one the first in sight.
void TimelineCanvas::stepSpan(int step) {
  if (picture_.rows.empty()) return;
  const int row = picture_.span ? rowOf(*picture_.span) : -1;
  if (row < 0) {
    const auto slabs =
        slabs_of(*timeline_, picture_.rows.front().lane, picture_.axis, picture_.width());
    if (!slabs.empty()) choose(slabs.front().first);
    return;
  }
  const Lane& lane = picture_.rows[static_cast<std::size_t>(row)].lane;
  if (step > 0 && *picture_.span + 1 < lane.last) choose(*picture_.span + 1);
  if (step < 0 && *picture_.span > lane.first) choose(*picture_.span - 1);
}

void TimelineCanvas::keyPressEvent(QKeyEvent* event) {
  const bool plain = (event->modifiers() & ~Qt::KeypadModifier & ~Qt::ShiftModifier) == 0;
  const int key = plain && timeline_ ? event->key() : int{Qt::Key_unknown};
  if (const double factor = zoomOf(key); factor != 1) return zoom(factor);
  if (const double share = panOf(key); share != 0) return pan(share * picture_.width());
  switch (key) {
    case Qt::Key_F:
      return fitChosen();
    case Qt::Key_Home:
      return fitAll();
    case Qt::Key_N:
      return goToMatch(event->modifiers() & Qt::ShiftModifier ? -1 : 1);
    case Qt::Key_Period:
      return stepSpan(1);
    case Qt::Key_Comma:
      return stepSpan(-1);
    case Qt::Key_Return:
    case Qt::Key_Enter: {
      const int row = picture_.span ? rowOf(*picture_.span) : picture_.rowAt(pointer_.y());
      if (row < 0) return;
      const int group = picture_.rows[static_cast<std::size_t>(row)].group;
      return fold(group, unfolded_[static_cast<std::size_t>(group)]);
    }
    default:
      QAbstractScrollArea::keyPressEvent(event);
  }
}

void TimelineCanvas::wheelEvent(QWheelEvent* event) {
  const QPoint turned = event->angleDelta();
  const bool over_names = event->position().x() < TimelinePicture::kNames;
  if (over_names || (event->modifiers() & Qt::ShiftModifier) || turned.y() == 0) {
    QAbstractScrollArea::wheelEvent(event);
    return;
  }
  pointer_ = event->position().toPoint();
  zoom(zoomOfWheel(turned.y()));
  event->accept();
}

void TimelineCanvas::mousePressEvent(QMouseEvent* event) {
  from_ = event->pos();
  drag_ = event->button() == Qt::LeftButton ? Drag::pressed : Drag::pan;
}

void TimelineCanvas::mouseMoveEvent(QMouseEvent* event) {
  const QPoint before = std::exchange(pointer_, event->pos());
  if (!timeline_ || drag_ == Drag::none) return;
  if (drag_ == Drag::pan) {
    pan(before.x() - pointer_.x());
    verticalScrollBar()->setValue(verticalScrollBar()->value() + before.y() - pointer_.y());
    return;
  }
  if (from_.x() < TimelinePicture::kNames) return;
  if ((pointer_ - from_).manhattanLength() >= kDragPixels) drag_ = Drag::area;
  if (drag_ == Drag::area) dragTo(pointer_);
}

void TimelineCanvas::dragTo(QPoint point) {
  const int last = static_cast<int>(picture_.rows.size()) - 1;
  const auto row = [&](int y) {
    const int at = picture_.rowAt(std::max(y, TimelinePicture::kRuler));
    return at < 0 ? last : at;
  };
  const auto time = [&](int x) {
    const double ns = picture_.axis.time_at(x - TimelinePicture::kNames);
    return std::clamp<std::int64_t>(std::llround(ns), 0, timeline_->end_ns);
  };
  const auto [top, bottom] = std::minmax({row(from_.y()), row(point.y())});
  const auto [left, right] = std::minmax({time(from_.x()), time(point.x())});
  picture_.area = TimelineArea{left, right, top, bottom};
  viewport()->update();
  emit areaChanged();
}

void TimelineCanvas::mouseReleaseEvent(QMouseEvent* event) {
  if (std::exchange(drag_, Drag::none) == Drag::pressed) clicked(event->pos());
}

void TimelineCanvas::clicked(QPoint point) {
  if (!timeline_) return;
  picture_.area.reset();
  const int row = picture_.rowAt(point.y());
  if (row >= 0 && point.x() < TimelinePicture::kNames) {
    const TimelineRow at = picture_.rows[static_cast<std::size_t>(row)];
    if (timeline_->groups[static_cast<std::size_t>(at.group)].ranks.size() > 1) {
      fold(at.group, !at.folded);
    }
    emit chosen({at.lane.rank, picture_.view.phase});
  } else if (const auto span = spanAt(point)) {
    choose(span);
  } else {
    picture_.span.reset();
    picture_.gap = gapAt(point);
    viewport()->update();
    emit chosen({picture_.gap ? picture_.gap->lane.rank : -1, std::nullopt});
  }
  emit areaChanged();
}

void TimelineCanvas::mouseDoubleClickEvent(QMouseEvent* event) {
  if (const auto span = spanAt(event->pos())) {
    choose(span);
    fitChosen();
  }
}

bool TimelineCanvas::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const auto span = spanAt(help->pos());
    const auto gap = span ? std::nullopt : gapAt(help->pos());
    QToolTip::showText(help->globalPos(),
                       span  ? describe(*span)
                       : gap ? describe(*gap)
                             : plainTip(picture_.ranksAt(help->pos())),
                       viewport());
    return true;
  }
  if (event->type() == QEvent::Leave) pointer_ = {-1, -1};
  return QAbstractScrollArea::viewportEvent(event);
}

void TimelineCanvas::scrollContentsBy(int, int) {
  picture_.scrolled = verticalScrollBar()->value();
  viewport()->update();
}

void TimelineCanvas::resizeEvent(QResizeEvent*) {
  picture_.size = viewport()->size();
  const auto area = picture_.area;
  layRows();
  picture_.area = area;
  fitted_ ? fitAll() : setAxis(picture_.axis);
}

void TimelineCanvas::paintEvent(QPaintEvent*) {
  QPainter painter(viewport());
  picture_.palette = palette();
  picture_.font = font();
  if (timeline_) {
    paint(painter, picture_);
    return;
  }
  paintWhy(painter, rect(), palette(), why_);
}

QString TimelineCanvas::describe(std::size_t span) const {
  return gui::describe(*timeline_, span, groupAt(rowOf(span)));
}

QString TimelineCanvas::describe(const LaneGap& gap) const {
  const auto row = std::find_if(picture_.rows.begin(), picture_.rows.end(),
                                [&](const TimelineRow& at) { return at.lane == gap.lane; });
  const bool shown = row != picture_.rows.end();
  return gui::describe(*timeline_, gap,
                       groupAt(shown ? static_cast<int>(row - picture_.rows.begin()) : -1));
}

const RankGroup* TimelineCanvas::groupAt(int row) const {
  if (row < 0 || !picture_.rows[static_cast<std::size_t>(row)].folded) return nullptr;
  return &timeline_->groups[static_cast<std::size_t>(
      picture_.rows[static_cast<std::size_t>(row)].group)];
}

}  // namespace tessera::gui
