// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/step_views/link_painter.h"

#include <algorithm>
#include <cmath>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/models/colours.h"
#include "gui/translations/said.h"

namespace tessera::gui {
namespace {

constexpr int kSteps = 20;  // of the scale below

QString percentOf(double share) { return QString("%1 %").arg(100 * share, 0, 'f', 0); }

class LinkPainting {
 public:
  LinkPainting(QPainter& painter, const LinkPicture& picture)
      : painter_(painter),
        picture_(picture),
        theme_(themeOf(picture.palette)),
        text_(picture.palette.color(QPalette::Text)),
        faint_(picture.palette.color(QPalette::PlaceholderText)),
        small_(smallOf(picture.font)) {
    const auto [from, to] = picture.lanes();
    plot_ = QRect(LinkPicture::kNames, picture.top(), picture.width,
                  static_cast<int>(to - from) * picture.laneHeight());
  }

  void all() {
    painter_.fillRect(QRect({0, 0}, picture_.size), picture_.palette.color(QPalette::Window));
    painter_.setFont(small_);
    header();
    const auto [from, to] = picture_.lanes();
    painter_.setClipRect(plot_);
    for (std::size_t lane = from; lane < to; ++lane) strip(lane);
    painter_.setClipping(false);
    for (std::size_t lane = from; lane < to; ++lane) name(lane);
    painter_.setClipRect(QRect(plot_.left(), 0, plot_.width(), plot_.top()));
    calls();
    painter_.setClipping(false);
    paintRuler(painter_, picture_.axis, {plot_.left(), 0, plot_.width(), LinkPicture::kRuler},
               text_);
    paintMoment(painter_, picture_, plot_);
    below();
  }

 private:
  double xOf(std::int64_t ns) const {
    return plot_.left() + picture_.axis.x_of(static_cast<double>(ns));
  }
  QRect rowOf(std::size_t lane) const {
    const int high = picture_.laneHeight();
    return {0, picture_.top() + static_cast<int>(lane - picture_.first) * high, plot_.left(), high};
  }

  void header() {
    painter_.setPen(faint_);
    const QRect row(0, picture_.top() - LinkPicture::kCall, plot_.left() - 6, LinkPicture::kCall);
    painter_.drawText(row, Qt::AlignRight | Qt::AlignVCenter, Words::tr("mean"));
    painter_.drawText(row.adjusted(0, 0, -LinkPicture::kFigure, 0),
                      Qt::AlignRight | Qt::AlignVCenter, Words::tr("peak"));
    painter_.drawText(row.adjusted(10, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter,
                      Words::tr("link"));
  }

  void strip(std::size_t lane) {
    const QRect row = rowOf(lane);
    for (const LoadColumn& column :
         columns_of(picture_.steps, lane, picture_.axis, plot_.width())) {
      painter_.fillRect(plot_.left() + column.from, row.top(), column.to - column.from,
                        row.height() - 1, colourOfShare(column.load, theme_));
    }
  }

  void name(std::size_t lane) {
    const LinkLane& of = picture_.steps.lanes[lane];
    const QRect row = rowOf(lane);
    const bool looked_at = static_cast<int>(lane) == picture_.lane;
    if (looked_at) painter_.fillRect(row, picture_.palette.color(QPalette::Button));
    if (carries(of, picture_.rank)) {
      painter_.fillRect(0, row.top(), 5, row.height() - 1,
                        picture_.palette.color(QPalette::Highlight));
    }
    painter_.setPen(text_);
    const QRect figures = row.adjusted(0, 0, -6, 0);
    painter_.drawText(figures, Qt::AlignRight | Qt::AlignVCenter, percentOf(of.first().mean_load));
    painter_.drawText(figures.adjusted(0, 0, -LinkPicture::kFigure, 0),
                      Qt::AlignRight | Qt::AlignVCenter, percentOf(of.first().most_load));
    const QRect words = row.adjusted(10, 0, -2 * LinkPicture::kFigure - 8, 0);
    painter_.drawText(
        words, Qt::AlignLeft | Qt::AlignVCenter,
        QFontMetrics(small_).elidedText(shortName(of), Qt::ElideRight, words.width()));
  }

  static QString shortName(const LinkLane& lane) {
    const QString name = said(lane.first().name);
    if (lane.links.size() == 1) return name;
    return QString::fromUtf8("%1 \u00d7%2")
        .arg(name, countText(static_cast<double>(lane.links.size())));
  }

  void calls() {
    const std::vector<int> rows = picture_.call_rows();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const CallSlack& call = (*picture_.steps.calls)[i];
      const double from = xOf(call.start_ns), to = xOf(call.end_ns);
      const QRectF box(from, LinkPicture::kRuler + rows[i] * LinkPicture::kCall + 1,
                       std::max(1.0, to - from - 1), LinkPicture::kCall - 2);
      if (to < plot_.left() || from > plot_.right()) continue;
      const QColor colour = colourOf(call.phase);
      painter_.fillRect(box, colour);
      if (call.phase == picture_.phase) {
        painter_.setPen(QPen(text_, 2));
        painter_.drawRect(box.adjusted(1, 1, -1, -1));
      }
      const QString name = toText(name_of(call.phase));
      const QRectF seen = box.intersected(QRectF(plot_.left(), 0, plot_.width(), plot_.top()));
      if (seen.width() < QFontMetrics(small_).horizontalAdvance(name) + 6) continue;
      painter_.setPen(textOn(colour));
      painter_.drawText(seen, Qt::AlignCenter, name);
    }
  }

  // What the colours mean, and how many lanes are out of sight.
  void below() {
    const int top = plot_.bottom() + 6, high = 12, wide = 9;
    const QString none = percentOf(0), all = percentOf(1);
    int x = plot_.left();
    painter_.setPen(text_);
    const auto word = [&](const QString& text) {
      const int width = QFontMetrics(small_).horizontalAdvance(text) + 8;
      painter_.drawText(QRect(x, top - 2, width, high + 4), Qt::AlignCenter, text);
      x += width;
    };
    word(none);
    for (int step = 0; step <= kSteps; ++step, x += wide) {
      painter_.fillRect(x, top, wide, high,
                        colourOfShare(static_cast<double>(step) / kSteps, theme_));
    }
    word(all);
    word(Words::tr("of what a link carries"));
    const std::size_t hidden =
        picture_.steps.lanes.size() - (picture_.lanes().second - picture_.lanes().first);
    if (hidden == 0) return;
    painter_.drawText(QRect(x, top - 2, plot_.right() - x, high + 4),
                      Qt::AlignRight | Qt::AlignVCenter,
                      Words::tr("%1 more: PgUp, PgDn").arg(countText(static_cast<double>(hidden))));
  }

  QPainter& painter_;
  const LinkPicture& picture_;
  Theme theme_;
  QColor text_, faint_;
  QFont small_;
  QRect plot_;
};

}  // namespace

std::vector<int> LinkPicture::call_rows() const {
  std::vector<int> rows;
  std::vector<std::int64_t> ends;  // by row
  if (steps.calls == nullptr) return rows;
  for (const CallSlack& call : *steps.calls) {
    const auto free = std::find_if(ends.begin(), ends.end(),
                                   [&](std::int64_t end) { return end <= call.start_ns; });
    rows.push_back(static_cast<int>(free - ends.begin()));
    if (free == ends.end()) {
      ends.push_back(call.end_ns);
    } else {
      *free = call.end_ns;
    }
  }
  return rows;
}

int LinkPicture::top() const {
  const std::vector<int> rows = call_rows();
  const int count = rows.empty() ? 0 : *std::max_element(rows.begin(), rows.end()) + 1;
  return kRuler + count * kCall + 2;
}

int LinkPicture::laneHeight() const {
  const int free = std::max(1, size.height() - top() - kBelow);
  const int count = std::max(1, static_cast<int>(steps.lanes.size()));
  return std::clamp(free / count, kLeastLane, kMostLane);
}

std::size_t LinkPicture::room() const {
  return static_cast<std::size_t>(std::max(1, (size.height() - top() - kBelow) / laneHeight()));
}

std::pair<std::size_t, std::size_t> LinkPicture::lanes() const {
  return {first, std::min(steps.lanes.size(), first + room())};
}

int LinkPicture::laneAt(int y) const {
  if (y < top()) return -1;
  const std::size_t lane = first + static_cast<std::size_t>((y - top()) / laneHeight());
  return lane < lanes().second ? static_cast<int>(lane) : -1;
}

void paint(QPainter& painter, const LinkPicture& picture) {
  if (!picture.steps.empty()) LinkPainting(painter, picture).all();
}

}  // namespace tessera::gui
