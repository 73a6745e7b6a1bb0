// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/step_views/timeline_painter.h"

#include <QImage>
#include <QPaintEngine>
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/models/colours.h"
#include "gui/step_views/time_painter.h"
#include "gui/timeline/span_text.h"

namespace tessera::gui {
namespace {

constexpr int kLeastText = 26;     // pixels of a span that says its name
constexpr int kNameWidth = 118;    // of the ranks, left of the streams' names
constexpr int kNamesApart = 6;     // pixels between a rank's and a stream's name
constexpr int kLeastBar = 12;      // pixels of a span that has a bar on top
constexpr int kCommunication = 3;  // pixels of the bar that says how much is communication
constexpr int kShades = 32;        // of a pixel that is covered in part

QColor mixed(const QColor& under, const QColor& over, double part) {
  const auto mix = [&](float a, float b) {
    return static_cast<float>(static_cast<double>(a) * (1 - part) + static_cast<double>(b) * part);
  };
  return QColor::fromRgbF(mix(under.redF(), over.redF()), mix(under.greenF(), over.greenF()),
                          mix(under.blueF(), over.blueF()));
}

class Painting {
 public:
  Painting(QPainter& painter, const TimelinePicture& picture)
      : painter_(painter),
        picture_(picture),
        index_(*picture.index),
        base_(picture.palette.color(QPalette::Base)),
        text_(picture.palette.color(QPalette::Text)),
        path_(coloursOf(Tone::bad, themeOf(picture.palette)).text),
        small_(smallOf(picture.font)),
        bold_(picture.font),
        strips_(painter.paintEngine()->type() != QPaintEngine::SVG) {
    bold_.setBold(true);
  }

  void all() {
    painter_.fillRect(QRect({0, 0}, picture_.size), base_);
    painter_.setFont(small_);
    painter_.setClipRect(
        QRect(0, TimelinePicture::kRuler, picture_.size.width(), picture_.size.height()));
    const int rows = static_cast<int>(picture_.rows.size());
    const int first = std::max(0, picture_.rowAt(TimelinePicture::kRuler));
    for (int row = first; row < rows && picture_.topOf(row) < picture_.size.height(); ++row) {
      lane(row);
    }
    area();
    for (int row = first; row < rows && picture_.topOf(row) < picture_.size.height(); ++row) {
      name(row);
    }
    painter_.setClipping(false);
    ruler();
  }

 private:
  QRect placeOf(const Slab& slab, int row) const {
    return {TimelinePicture::kNames + slab.from, picture_.topOf(row) + 2, slab.to - slab.from,
            TimelinePicture::kRow - 4};
  }

  void lane(int row) {
    const TimelineRow& at = picture_.rows[static_cast<std::size_t>(row)];
    if (at.group % 2 == 1) {
      painter_.fillRect(0, picture_.topOf(row), picture_.size.width(), TimelinePicture::kRow,
                        picture_.palette.color(QPalette::AlternateBase));
    }
    const auto slabs = slabs_of(index_, at.lane, picture_.axis, picture_.width());
    if (strips_) strips(slabs, row);
    for (const Slab& slab : slabs) {
      if (!inStrip(slab)) slabIn(slab, row);
      mark(slab, row);
    }
    if (picture_.gap && picture_.gap->lane == at.lane) gap(row);
  }

  bool isFound(const Slab& slab) const {
    return picture_.matches.empty() || any(picture_.matches, slab);
  }
  bool isOnPath(const Slab& slab) const {
    return !index_.path_before.empty() && any(index_.path_before, slab);
  }
  static bool any(const std::vector<std::uint32_t>& before, const Slab& slab) {
    return before[slab.last] > before[slab.first];
  }

  // On a screen the slabs of one pixel are drawn together: a line of pixels that is stretched to
  // the row's height, and one below it for the critical path.
  bool inStrip(const Slab& slab) const { return strips_ && slab.to == slab.from + 1; }

  void strips(const std::vector<Slab>& slabs, int row) {
    QImage fills(picture_.width(), 1, QImage::Format_ARGB32_Premultiplied);
    fills.fill(Qt::transparent);
    QImage path = fills;
    auto* fill = reinterpret_cast<QRgb*>(fills.scanLine(0));
    auto* on_path = reinterpret_cast<QRgb*>(path.scanLine(0));
    bool fills_any = false, path_any = false;
    for (const Slab& slab : slabs) {
      if (!inStrip(slab)) continue;
      fill[slab.from] = shade(index_.phase(slab.first), slab.cover, isFound(slab));
      fills_any = true;
      if (!isOnPath(slab)) continue;
      on_path[slab.from] = path_.rgb();
      path_any = true;
    }
    const QRect place(TimelinePicture::kNames, picture_.topOf(row) + 2, picture_.width(),
                      TimelinePicture::kRow - 4);
    if (fills_any) painter_.drawImage(place, fills);
    if (path_any) {
      painter_.drawImage(QRect(place.left(), place.bottom() - 1, place.width(), 3), path);
    }
  }

  // The colour of a pixel that spans of a phase cover so much, in steps that nobody sees.
  QRgb shade(Phase phase, double cover, bool found) {
    const auto step = static_cast<std::size_t>(std::lround(cover * kShades));
    QRgb& known = shades_[static_cast<std::size_t>(phase)][found ? 1 : 0][step];
    if (known == 0) {
      known = colourIn(phase, static_cast<double>(step) / kShades, found).rgb();
    }
    return known;
  }
  QColor colourIn(Phase phase, double cover, bool found) const {
    return mixed(base_, colourOf(phase), (0.4 + 0.6 * cover) * (found ? 1 : 0.22));
  }

  void slabIn(const Slab& slab, int row) {
    const QColor colour = colourIn(index_.phase(slab.first), slab.cover, isFound(slab));
    const QRect place = placeOf(slab, row);
    painter_.fillRect(place, colour);
    if (place.width() > 3) {  // neighbours stay apart
      painter_.fillRect(place.left(), place.top(), 1, place.height(), base_);
    }
    if (isOnPath(slab)) {
      painter_.fillRect(place.left(), place.bottom() - 1, place.width(), 3, path_);
    }
    if (slab.last == slab.first + 1) communication(slab.first, place, colour);
    if (place.width() >= kLeastText && slab.last == slab.first + 1) {
      says(slab.first, place, colour);
    }
  }

  // A bar on top, as much of the span's width as it communicates of its time: the simulator knows
  // how much, not when.
  void communication(std::size_t span, const QRect& place, const QColor& under) {
    const std::int64_t ns = communication_ns(index_, span);
    if (ns <= 0 || place.width() < kLeastBar) return;
    const std::int64_t whole_ns = index_.end_ns_of(span) - index_.start_ns(span);
    const double share = static_cast<double>(ns) / static_cast<double>(whole_ns);
    painter_.fillRect(
        QRectF(place.left(), place.top(), place.width() * std::min(1.0, share), kCommunication),
        mixed(under, textOn(under), 0.6));
  }

  // Nothing is there: what is chosen is framed.
  void gap(int row) {
    const double from = picture_.axis.x_of(static_cast<double>(picture_.gap->from_ns));
    const double to = picture_.axis.x_of(static_cast<double>(picture_.gap->to_ns));
    painter_.setPen(QPen(text_, 2, Qt::DotLine));
    painter_.drawRect(QRectF(
        TimelinePicture::kNames + std::max(-4.0, from), picture_.topOf(row) + 3,
        std::min(to, picture_.width() + 4.0) - std::max(-4.0, from), TimelinePicture::kRow - 6));
  }

  // What is chosen.
  void mark(const Slab& slab, int row) {
    const bool chosen = picture_.span && *picture_.span >= slab.first && *picture_.span < slab.last;
    const Lane& lane = picture_.rows[static_cast<std::size_t>(row)].lane;
    const bool phase = picture_.view.phase && lane.stream == Stream::phases &&
                       *picture_.view.phase == index_.phase(slab.first);
    if (!chosen && !phase) return;
    painter_.setPen(QPen(text_, 2, chosen ? Qt::SolidLine : Qt::DotLine));
    painter_.drawRect(placeOf(slab, row).adjusted(0, 0, -1, -1));
  }

  void says(std::size_t span, const QRect& place, const QColor& under) {
    const QRect room = place.adjusted(3, 0, -3, 0);
    const QFontMetrics metrics(small_);
    const QString name = QString::fromStdString(index_.names[index_.name_of[span]]);
    const std::int64_t ns = index_.end_ns_of(span) - index_.start_ns(span);
    const QString long_name = name + "  " + secondsText(static_cast<double>(ns) * 1e-9);
    const bool fits = metrics.horizontalAdvance(long_name) <= room.width();
    painter_.setPen(textOn(under));
    painter_.drawText(room, Qt::AlignLeft | Qt::AlignVCenter,
                      fits ? long_name : metrics.elidedText(name, Qt::ElideRight, room.width()));
  }

  void area() {
    if (!picture_.area) return;
    const TimelineArea& area = *picture_.area;
    const double from = picture_.axis.x_of(static_cast<double>(area.from_ns));
    const double to = picture_.axis.x_of(static_cast<double>(area.to_ns));
    const QRectF box(TimelinePicture::kNames + from, picture_.topOf(area.first_row), to - from,
                     (area.last_row - area.first_row + 1) * TimelinePicture::kRow);
    QColor fill = picture_.palette.color(QPalette::Highlight);
    painter_.setPen(QPen(fill, 1));
    fill.setAlphaF(0.18F);
    painter_.setBrush(fill);
    painter_.drawRect(box);
    painter_.setBrush(Qt::NoBrush);
  }

  bool isChosenRank(const TimelineRow& row) const {
    const std::vector<int>& ranks = index_.groups[static_cast<std::size_t>(row.group)].ranks;
    return row.folded ? std::binary_search(ranks.begin(), ranks.end(), picture_.view.rank)
                      : row.lane.rank == picture_.view.rank;
  }

  // Of a trace's process: the room that its line's name leaves.
  int nameWidth(const TimelineRow& at, int room) const {
    if (!index_.trace) return kNameWidth;
    const int beside = QFontMetrics(small_).horizontalAdvance(laneText(index_, at.lane));
    return std::max(kNameWidth, room - beside - kNamesApart);
  }

  void name(int row) {
    const TimelineRow& at = picture_.rows[static_cast<std::size_t>(row)];
    const QRect place(0, picture_.topOf(row), TimelinePicture::kNames, TimelinePicture::kRow);
    painter_.fillRect(place, picture_.palette.color(QPalette::Window));
    if (isChosenRank(at)) {
      painter_.fillRect(place.left(), place.top(), 4, place.height(),
                        picture_.palette.color(QPalette::Highlight));
    }
    const QRect room = place.adjusted(8, 0, -6, 0);
    const int name_width = nameWidth(at, room.width());
    painter_.setPen(text_);
    if (at.first) {
      const RankGroup& group = index_.groups[static_cast<std::size_t>(at.group)];
      const QString mark = group.ranks.size() < 2 ? QString("   ")
                           : at.folded            ? QString::fromUtf8("\u25b8 ")
                                                  : QString::fromUtf8("\u25be ");
      const QString who = at.folded || index_.trace ? groupText(index_, group)
                                                    : Words::tr("rank %1").arg(at.lane.rank);
      painter_.setFont(bold_);
      const QFontMetrics metrics(bold_);
      const bool fits = metrics.horizontalAdvance(mark + who) <= name_width;
      const QString brief =
          index_.trace
              ? metrics.elidedText(mark + who, Qt::ElideRight, name_width)
              : mark + Words::tr("%1 ranks, first %2").arg(group.ranks.size()).arg(at.lane.rank);
      painter_.drawText(room, Qt::AlignLeft | Qt::AlignVCenter, fits ? mark + who : brief);
      painter_.fillRect(0, place.top(), picture_.size.width(), 1,
                        picture_.palette.color(QPalette::Button));
      painter_.setFont(small_);
    }
    painter_.setPen(picture_.palette.color(QPalette::PlaceholderText));
    const int left = at.first ? room.width() - name_width - kNamesApart : room.width();
    painter_.drawText(
        room, Qt::AlignRight | Qt::AlignVCenter,
        QFontMetrics(small_).elidedText(laneText(index_, at.lane), Qt::ElideRight, left));
  }

  void ruler() {
    const QRect place(0, 0, picture_.size.width(), TimelinePicture::kRuler);
    painter_.fillRect(place, picture_.palette.color(QPalette::Window));
    painter_.setFont(small_);
    paintRuler(painter_, picture_.axis, place.adjusted(TimelinePicture::kNames, 0, 0, 0), text_);
    painter_.fillRect(0, TimelinePicture::kRuler - 1, place.width(), 1, text_);
  }

  QPainter& painter_;
  const TimelinePicture& picture_;
  const TimelineIndex& index_;
  QColor base_, text_, path_;
  QFont small_, bold_;
  bool strips_;  // not in a drawing of lines
  // By phase, whether the search found it, and how much of the pixel is covered; 0 = not yet known.
  std::array<std::array<std::array<QRgb, kShades + 1>, 2>, kPhaseCount> shades_{};
};

}  // namespace

int TimelinePicture::rowAt(int y) const {
  if (y < kRuler) return -1;
  const int row = (y - kRuler + scrolled) / kRow;
  return row < static_cast<int>(rows.size()) ? row : -1;
}

QString TimelinePicture::ranksAt(QPoint point) const {
  const int row = rowAt(point.y());
  if (index == nullptr || row < 0 || point.x() >= kNames) return {};
  const int group = rows[static_cast<std::size_t>(row)].group;
  return groupText(*index, index->groups[static_cast<std::size_t>(group)]);
}

std::optional<std::pair<std::int64_t, std::int64_t>> TimelinePicture::chosenTime() const {
  if (index == nullptr) return std::nullopt;
  if (area) return std::pair(area->from_ns, area->to_ns);
  if (gap) return std::pair(gap->from_ns, gap->to_ns);
  if (!span) return std::nullopt;
  return std::pair(index->start_ns(*span), index->end_ns_of(*span));
}

std::vector<TimelineRow> TimelinePicture::rowsOf(const TimelineIndex& index,
                                                 const std::vector<bool>& unfolded) {
  std::vector<TimelineRow> rows;
  for (std::size_t g = 0; g < index.groups.size(); ++g) {
    const RankGroup& group = index.groups[g];
    const bool folded = group.ranks.size() > 1 && !unfolded[g];
    for (const int rank : group.ranks) {
      bool first = true;
      for (const Lane& lane : lanes_of(index, rank)) {
        rows.push_back({lane, static_cast<int>(g), folded, std::exchange(first, false)});
      }
      if (folded) break;
    }
  }
  return rows;
}

void paint(QPainter& painter, const TimelinePicture& picture) {
  if (picture.index != nullptr) Painting(painter, picture).all();
}

}  // namespace tessera::gui
