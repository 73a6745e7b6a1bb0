// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/step_views/tail_painter.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/models/colours.h"
#include "gui/timeline/span_text.h"

namespace tessera::gui {
namespace {

constexpr int kLeastName = 12;  // pixels of a lane that has its ranks beside it

class TailPainting {
 public:
  TailPainting(QPainter& painter, const TailPicture& picture)
      : painter_(painter),
        picture_(picture),
        lanes_(picture.lanes()),
        base_(picture.palette.color(QPalette::Base)),
        text_(picture.palette.color(QPalette::Text)),
        small_(smallOf(picture.font)) {}

  void all() {
    painter_.fillRect(QRect({0, 0}, picture_.size), picture_.palette.color(QPalette::Window));
    const int bottom = picture_.top() + static_cast<int>(lanes_.size()) * picture_.lane();
    plot_ = QRect(TailPicture::kNames, picture_.top(), picture_.width, bottom - picture_.top());
    painter_.fillRect(plot_, base_);
    painter_.setFont(small_);
    painter_.setClipRect(plot_);
    tail();
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) area(lane);
    painter_.setClipping(false);
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) name(lane);
    mark(picture_.steps.tail.half_ns, Words::tr("half have ended"), true);
    mark(picture_.steps.tail.most_ns, Words::tr("nine tenths"), false);
    paintRuler(painter_, picture_.axis, {plot_.left(), 0, plot_.width(), TailPicture::kRuler},
               text_);
    paintMoment(painter_, picture_, plot_);
    leftOut();
  }

 private:
  double xOf(double ns) const { return plot_.left() + picture_.axis.x_of(ns); }
  int topOf(std::size_t lane) const {
    return picture_.top() + static_cast<int>(lane) * picture_.lane();
  }

  // From the moment when nine tenths have ended.
  void tail() {
    const RolloutSteps& steps = picture_.steps;
    const double from = xOf(static_cast<double>(steps.since(steps.tail.most_ns)));
    const double to = xOf(static_cast<double>(steps.length_ns()));
    QColor shade = picture_.palette.color(QPalette::Highlight);
    shade.setAlphaF(0.16F);
    painter_.fillRect(QRectF(from, plot_.top(), to - from, plot_.height()), shade);
  }

  void area(std::size_t lane) {
    const int room = picture_.lane() - (picture_.lane() > 8 ? 5 : 1);
    const auto most = static_cast<double>(std::max<std::int64_t>(1, picture_.steps.most_active));
    const int bottom = topOf(lane) + picture_.lane() - 1;  // of the areas: below it lanes part
    const bool chosen = static_cast<int>(lanes_[lane]) == picture_.replica;
    for (const ActiveColumn& column :
         columns_of(picture_.steps, lanes_[lane], picture_.axis, picture_.width)) {
      if (column.active == 0) continue;
      const double part = static_cast<double>(column.active) / most;
      const int high = std::max(1, static_cast<int>(std::lround(part * room)));
      const int x = plot_.left() + column.from;
      painter_.fillRect(x, bottom - high, column.to - column.from, high, colourOf(Phase::gen));
      if (chosen) painter_.fillRect(x, bottom - high - 1, column.to - column.from, 2, text_);
    }
    painter_.fillRect(plot_.left(), bottom, plot_.width(), 1,
                      picture_.palette.color(QPalette::Button));
  }

  void name(std::size_t lane) {
    const QRect place(0, topOf(lane), TailPicture::kNames, picture_.lane());
    const std::size_t replica = lanes_[lane];
    if (static_cast<int>(replica) == picture_.replica) {
      painter_.fillRect(place.left(), place.top(), 4, place.height(),
                        picture_.palette.color(QPalette::Highlight));
    }
    if (picture_.lane() < kLeastName) return;
    const QFontMetrics metrics(small_);
    const QString ranks = ranksText(RankGroup{picture_.steps.replicas[replica].rollout->ranks});
    painter_.setPen(text_);
    painter_.drawText(place.adjusted(8, 0, -34, 0), Qt::AlignLeft | Qt::AlignVCenter,
                      metrics.elidedText(ranks, Qt::ElideRight, place.width() - 42));
    if (picture_.lane() < 2 * kLeastName) return;
    painter_.setPen(picture_.palette.color(QPalette::PlaceholderText));
    painter_.drawText(place.adjusted(0, 1, -6, -1), Qt::AlignRight | Qt::AlignTop,
                      countText(static_cast<double>(picture_.steps.most_active)));
    painter_.drawText(place.adjusted(0, 1, -6, -1), Qt::AlignRight | Qt::AlignBottom, "0");
  }

  // Its text stands at the side that is asked for, where there is room.
  void mark(std::int64_t at_ns, const QString& what, bool left) {
    const std::int64_t ns = picture_.steps.since(at_ns);
    const double x = xOf(static_cast<double>(ns));
    if (x < plot_.left() || x > plot_.right() + 1) return;
    const QString text = what + " " + secondsText(static_cast<double>(ns) * 1e-9);
    const int wide = QFontMetrics(small_).horizontalAdvance(text) + 8;
    if (left ? x - wide < plot_.left() : x + wide > plot_.right()) left = !left;
    painter_.setPen(QPen(text_, 1.5, Qt::DashLine));
    painter_.drawLine(QPointF(x, TailPicture::kRuler + 2), QPointF(x, plot_.bottom()));
    const QRectF box(left ? x - wide : x, TailPicture::kRuler, wide, TailPicture::kMarks);
    painter_.setPen(text_);
    if (box.left() >= marked_) painter_.drawText(box, Qt::AlignCenter, text);
    marked_ = std::max(x, box.right());
  }

  void leftOut() {
    const std::size_t hidden = picture_.steps.replicas.size() - lanes_.size();
    if (hidden == 0) return;
    painter_.setPen(text_);
    painter_.drawText(QRect(plot_.left(), plot_.bottom() + 1, plot_.width(), TailPicture::kBelow),
                      Qt::AlignLeft | Qt::AlignVCenter,
                      Words::tr("Those that end last; %1 more are in the table.")
                          .arg(countText(static_cast<double>(hidden))));
  }

  QPainter& painter_;
  const TailPicture& picture_;
  std::vector<std::size_t> lanes_;
  QRect plot_;
  QColor base_, text_;
  QFont small_;
  double marked_ = 0;  // where the mark before ends
};

}  // namespace

int TailPicture::lane() const {
  const int room = std::max(1, size.height() - top() - kBelow);
  const int count = std::max(1, static_cast<int>(steps.replicas.size()));
  return std::clamp(room / count, kLeastLane, kMostLane);
}

std::vector<std::size_t> TailPicture::lanes() const {
  std::vector<std::size_t> all(steps.replicas.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const auto room =
      static_cast<std::size_t>(std::max(1, (size.height() - top() - kBelow) / lane()));
  if (all.size() <= room) return all;
  std::stable_sort(all.begin(), all.end(), [&](std::size_t a, std::size_t b) {
    return steps.replicas[a].tail.end_ns > steps.replicas[b].tail.end_ns;
  });
  all.resize(room);
  std::sort(all.begin(), all.end());
  return all;
}

int TailPicture::replicaAt(int y) const {
  const std::vector<std::size_t> shown = lanes();
  const int at = y < top() ? -1 : (y - top()) / lane();
  return at >= 0 && at < static_cast<int>(shown.size())
             ? static_cast<int>(shown[static_cast<std::size_t>(at)])
             : -1;
}

void paint(QPainter& painter, const TailPicture& picture) {
  if (!picture.steps.empty()) TailPainting(painter, picture).all();
}

}  // namespace tessera::gui
