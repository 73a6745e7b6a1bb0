// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/step_views/memory_painter.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/models/colours.h"
#include "gui/step/memory_text.h"

namespace tessera::gui {
namespace {

constexpr int kLinesApart = 46;
constexpr int kLeastBand = 15;   // pixels of a class that says its name
constexpr double kFarAbove = 6;  // a limit so many times the peak would flatten the picture
constexpr double kHeadroom = 1.07;

/// Round amounts from zero on, with as many digits as they need.
struct Scale {
  double step = 1, unit = 1;
  const char* name = "B";
  QString text(double bytes) const {
    const int digits = std::max(0, static_cast<int>(-std::floor(std::log10(step / unit) + 1e-9)));
    return QString::number(bytes / unit, 'f', digits);
  }
};

Scale scaleOf(double most, int pixels) {
  Scale scale;
  for (const char* name : {"KiB", "MiB", "GiB"}) {
    if (most < scale.unit * 1024) break;
    scale.unit *= 1024;
    scale.name = name;
  }
  const double least = most / scale.unit * kLinesApart / std::max(1, pixels);
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  double step = power;
  for (const double factor : {2.0, 5.0, 10.0}) {
    if (step < least) step = factor * power;
  }
  scale.step = step * scale.unit;
  return scale;
}

/// The pixels of a class in a column, from its top to its bottom.
struct Band {
  int top = 0, bottom = 0;
  int height() const { return bottom - top; }
};

/// Where there is most room for a class's name: columns in which its bands have pixels in common.
struct Room {
  QRect best;
  int from = 0;
  Band common;

  void add(const MemoryColumn& column, Band band) {
    const Band both{std::max(common.top, band.top), std::min(common.bottom, band.bottom)};
    if (both.height() < kLeastBand) {
      from = column.from;
      common = band;
    } else {
      common = both;
    }
    if (common.height() < kLeastBand) return;
    const QRect room(from, common.top, column.to - from, common.height());
    if (room.width() > best.width()) best = room;
  }
};

class MemoryPainting {
 public:
  MemoryPainting(QPainter& painter, const MemoryPicture& picture)
      : painter_(painter),
        picture_(picture),
        plot_(picture.plot()),
        base_(picture.palette.color(QPalette::Base)),
        text_(picture.palette.color(QPalette::Text)),
        small_(smallOf(picture.font)) {}

  void all() {
    painter_.fillRect(QRect({0, 0}, picture_.size), picture_.palette.color(QPalette::Window));
    painter_.fillRect(plot_, base_);
    painter_.setFont(small_);
    grid();
    painter_.setClipRect(plot_);
    areas();
    painter_.setClipping(false);
    line(picture_.limits.device, Words::tr("device"), Qt::SolidLine);
    line(picture_.limits.usable, Words::tr("plans may use"), Qt::DashLine);
    peak();
    phases();
    paintRuler(painter_, picture_.axis, {plot_.left(), 0, plot_.width(), MemoryPicture::kRuler},
               text_);
    paintMoment(painter_, picture_, plot_);
  }

 private:
  int xOf(double ns) const {
    return plot_.left() + static_cast<int>(std::lround(picture_.axis.x_of(ns)));
  }

  void grid() {
    const Scale scale = scaleOf(picture_.most(), plot_.height());
    for (double at = 0; at <= picture_.most(); at += scale.step) {
      const int y = static_cast<int>(picture_.yOf(at));
      painter_.fillRect(plot_.left(), y, plot_.width(), 1,
                        picture_.palette.color(QPalette::AlternateBase));
      painter_.setPen(text_);
      const QString unit = at == 0 ? QString(" ") + scale.name : QString();
      painter_.drawText(QRect(0, y - 8, MemoryPicture::kScale - 6, 16),
                        Qt::AlignRight | Qt::AlignVCenter, scale.text(at) + unit);
    }
  }

  std::vector<Band> bandsOf(std::size_t sample) const {
    const auto bytes = memory_classes(picture_.steps.samples[sample].use);
    std::vector<Band> bands;
    double under = 0;
    for (const std::size_t index : picture_.steps.classes) {
      const int bottom = static_cast<int>(std::lround(picture_.yOf(under)));
      under += static_cast<double>(bytes[index].second.value);
      bands.push_back({static_cast<int>(std::lround(picture_.yOf(under))), bottom});
    }
    return bands;
  }

  int topOf(std::size_t sample) const {
    return static_cast<int>(
        std::lround(picture_.yOf(static_cast<double>(picture_.steps.total(sample)))));
  }

  void areas() {
    const auto& classes = picture_.steps.classes;
    std::vector<Room> rooms(classes.size());
    int before = plot_.bottom();
    QColor shade = text_;  // of what a pixel falls to; the classes are seen through it
    shade.setAlphaF(0.2F);
    bool dense = false;  // the column before has several samples: its shade is its edge
    for (const MemoryColumn& column : columns_of(picture_.steps, picture_.axis, plot_.width())) {
      const std::vector<Band> bands = bandsOf(column.sample);
      const int x = plot_.left() + column.from, wide = column.to - column.from;
      for (std::size_t i = 0; i < bands.size(); ++i) {
        painter_.fillRect(x, bands[i].top, wide, bands[i].height(), classColour(classes[i]));
        if (bands[i].height() > 3) painter_.fillRect(x, bands[i].top, wide, 1, base_);
        rooms[i].add(column, bands[i]);
      }
      const int top = topOf(column.sample);
      painter_.fillRect(x, top, wide, topOf(column.least) - top, shade);
      painter_.fillRect(x, top - 1, wide, 2, text_);  // all together, whatever the colours
      const bool edge = !dense || column.least == column.sample;
      dense = column.least != column.sample;
      if (column.from > 0 && edge) {
        painter_.fillRect(x, std::min(top, before) - 1, 1, std::abs(top - before) + 2, text_);
      }
      before = top;
    }
    for (std::size_t i = 0; i < rooms.size(); ++i) says(classes[i], rooms[i].best);
  }

  void says(std::size_t of, const QRect& room) {
    const QString name = className(of);
    const QRect place = room.translated(plot_.left(), 0);
    if (place.width() < QFontMetrics(small_).horizontalAdvance(name) + 8) return;
    painter_.setPen(textOn(classColour(of)));
    painter_.drawText(place, Qt::AlignCenter, name);
  }

  // With its amount, at the right end; above everything, so that it can be read on any colour.
  void line(std::int64_t bytes, const QString& name, Qt::PenStyle style) {
    if (bytes <= 0) return;
    const QString text = QString("%1 %2").arg(name, bytesText(bytes));
    const auto amount = static_cast<double>(bytes);
    const bool in_sight = amount <= picture_.most();
    const bool over = picture_.steps.total(picture_.steps.peak) > bytes;
    const QColor colour = over ? coloursOf(Tone::bad, themeOf(picture_.palette)).text : text_;
    const int y = in_sight ? static_cast<int>(picture_.yOf(amount)) : plot_.top() + above_;
    const int wide = QFontMetrics(small_).horizontalAdvance(text) + 10;
    painter_.setPen(QPen(colour, 1.5, style));
    if (in_sight) painter_.drawLine(plot_.left(), y, plot_.right(), y);
    const QRect box(plot_.right() - wide, in_sight ? labelTop(y) : y, wide, 15);
    painter_.fillRect(box, base_);
    painter_.setPen(colour);
    painter_.drawText(box, Qt::AlignCenter, text);
    if (!in_sight) above_ += 16;
    labels_.push_back(box);
  }

  // Above its line, or below where another label is.
  int labelTop(int y) const {
    const auto taken = [&](int top) {
      return std::any_of(labels_.begin(), labels_.end(), [&](const QRect& other) {
        return top < other.bottom() && top + 15 > other.top();
      });
    };
    return taken(y - 16) ? y + 2 : y - 16;
  }

  void peak() {
    const auto& steps = picture_.steps;
    const double from = picture_.axis.x_of(static_cast<double>(steps.samples[steps.peak].time_ns));
    const double to = picture_.axis.x_of(static_cast<double>(steps.end_of(steps.peak)));
    if (to < 0 || from > plot_.width()) return;
    const double middle = (std::max(0.0, from) + std::min<double>(to, plot_.width())) / 2;
    const QPointF tip(plot_.left() + middle,
                      picture_.yOf(static_cast<double>(steps.total(steps.peak))) - 2);
    painter_.setPen(Qt::NoPen);
    painter_.setBrush(text_);
    painter_.drawPolygon(QPolygonF({tip, tip + QPointF(-5, -8), tip + QPointF(5, -8)}));
    painter_.setBrush(Qt::NoBrush);
  }

  void phases() {
    painter_.setClipRect(plot_.left(), 0, plot_.width(), plot_.bottom() + 1);
    for (const Span& span : picture_.steps.phases) {
      const int from = xOf(static_cast<double>(span.start_ns));
      const int to = std::max(from + 1, xOf(static_cast<double>(span.end_ns)));
      if (to < plot_.left() || from > plot_.right()) continue;
      const QRect box(from, MemoryPicture::kRuler + 2, to - from, MemoryPicture::kPhases - 4);
      const QColor colour = colourOf(span.phase);
      painter_.fillRect(box, colour);
      if (box.width() > 3) painter_.fillRect(box.left(), box.top(), 1, box.height(), base_);
      phaseName(span.phase, box.intersected(QRect(plot_.left(), 0, plot_.width(), box.bottom())));
      if (picture_.phase != span.phase) continue;
      painter_.setPen(QPen(text_, 2));
      painter_.drawRect(box.adjusted(0, 0, -1, -1));
      painter_.setPen(QPen(text_, 1, Qt::DotLine));
      painter_.drawRect(QRect(from, plot_.top(), to - from, plot_.height() - 1));
    }
    painter_.setClipping(false);
  }

  void phaseName(Phase phase, const QRect& box) {
    const QString name = toText(name_of(phase));
    const QFontMetrics metrics(small_);
    if (box.width() < 30) return;
    painter_.setPen(textOn(colourOf(phase)));
    painter_.drawText(box.adjusted(3, 0, -2, 0), Qt::AlignVCenter | Qt::AlignLeft,
                      metrics.elidedText(name, Qt::ElideRight, box.width() - 5));
  }

  QPainter& painter_;
  const MemoryPicture& picture_;
  QRect plot_;
  QColor base_, text_;
  QFont small_;
  int above_ = 2;              // pixels down to the next label of a line that is out of sight
  std::vector<QRect> labels_;  // of lines
};

}  // namespace

double MemoryPicture::most() const {
  if (steps.empty()) return 1;
  const auto peak = static_cast<double>(std::max<std::int64_t>(1, steps.total(steps.peak)));
  double most = peak;
  for (const std::int64_t line : {limits.usable, limits.device}) {
    if (static_cast<double>(line) <= kFarAbove * peak) {
      most = std::max(most, static_cast<double>(line));
    }
  }
  return most * kHeadroom;
}

double MemoryPicture::yOf(double bytes) const {
  const QRect box = plot();
  return box.bottom() + 1 - bytes / most() * box.height();
}

void paint(QPainter& painter, const MemoryPicture& picture) {
  if (!picture.steps.empty()) MemoryPainting(painter, picture).all();
}

}  // namespace tessera::gui
