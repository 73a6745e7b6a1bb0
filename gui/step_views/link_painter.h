// SPDX-License-Identifier: GPL-3.0-or-later
// The load of links over the step on any painter: a strip for each lane of equal links, the fullest
// first, under the calls of the step; the stronger a colour, the fuller the link.
//
// Pure drawing of a LinkPicture. The cost grows with pixels and lanes in sight.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "gui/step_views/time_painter.h"
#include "gui/timeline/link_steps.h"

namespace tessera::gui {

struct LinkPicture : TimePicture {
  static constexpr int kNames = 286, kFigure = 50, kRuler = 24, kCall = 18, kBelow = 26,
                       kLeastLane = 15, kMostLane = 30;

  LinkSteps steps;
  std::size_t first = 0;       // lanes above the picture
  int lane = -1;               // that is looked at
  int rank = -1;               // whose lanes are marked
  std::optional<Phase> phase;  // whose calls are framed

  /// The row of each call above the lanes: calls that overlap have rows of their own.
  std::vector<int> call_rows() const;
  int top() const;
  /// Pixels of a lane, and how many there is room for.
  int laneHeight() const;
  std::size_t room() const;
  /// Lanes in sight: [first, second).
  std::pair<std::size_t, std::size_t> lanes() const;
  /// The lane at a height; -1 = none.
  int laneAt(int y) const;
};

void paint(QPainter& painter, const LinkPicture& picture);

}  // namespace tessera::gui
