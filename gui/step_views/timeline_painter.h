// SPDX-License-Identifier: GPL-3.0-or-later
// A timeline on any painter: names at the left, time on top, a row for each lane.
//
// Pure drawing: what is shown where stands in a TimelinePicture, and both the window and the export
// paint it. The cost grows with pixels and rows in sight, not with the spans.
#pragma once

#include <QFont>
#include <QPainter>
#include <QPalette>
#include <QRect>
#include <QSize>
#include <QString>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "gui/document/view_state.h"
#include "gui/timeline/lane_gap.h"
#include "gui/timeline/timeline_index.h"

namespace tessera::gui {

/// A lane in its place. A folded group shows the lanes of its first rank for all of them.
struct TimelineRow {
  Lane lane;
  int group = 0;
  bool folded = false;
  bool first = false;  // of its rank or folded group: the name stands here
};

/// A rectangle of time and rows that was drawn with the mouse; rows inclusive.
struct TimelineArea {
  std::int64_t from_ns = 0, to_ns = 0;
  int first_row = 0, last_row = 0;
  bool operator==(const TimelineArea&) const = default;
};

struct TimelinePicture {
  static constexpr int kRow = 20, kNames = 196, kRuler = 24;

  const TimelineIndex* index = nullptr;  // not owned
  std::vector<TimelineRow> rows;
  TimeAxis axis;  // of the pixels right of the names
  int scrolled = 0;
  QSize size;
  QPalette palette;
  QFont font;
  std::vector<std::uint32_t> matches;  // matches_before(); empty = no search
  std::optional<std::size_t> span;     // that is chosen
  std::optional<LaneGap> gap;          // likewise; never both
  std::optional<TimelineArea> area;
  ViewState view;

  int width() const { return std::max(1, size.width() - kNames); }
  int topOf(int row) const { return kRuler + row * kRow - scrolled; }
  /// -1 where there is none.
  int rowAt(int y) const;
  /// The ranks whose name stands at a point; empty where none does.
  QString ranksAt(QPoint point) const;
  /// From and to of the area, else of the span or the gap that is chosen.
  std::optional<std::pair<std::int64_t, std::int64_t>> chosenTime() const;
  /// The rows of all groups; ranks of those in `unfolded` one by one.
  static std::vector<TimelineRow> rowsOf(const TimelineIndex& index,
                                         const std::vector<bool>& unfolded);
};

void paint(QPainter& painter, const TimelinePicture& picture);

}  // namespace tessera::gui
