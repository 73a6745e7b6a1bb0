// SPDX-License-Identifier: GPL-3.0-or-later
// The active sequences of every replica over the generation on any painter: a lane for each, above
// them the moments when half and nine tenths of all have ended, and the tail shaded.
//
// Pure drawing of a TailPicture. The cost grows with pixels and lanes in sight.
#pragma once

#include <QRect>
#include <optional>
#include <vector>

#include "gui/step/rollout_steps.h"
#include "gui/step_views/time_painter.h"

namespace tessera::gui {

struct TailPicture : TimePicture {
  static constexpr int kNames = 132, kRuler = 24, kMarks = 20, kBelow = 18, kLeastLane = 4,
                       kMostLane = 64;

  RolloutSteps steps;
  int replica = -1;  // that is looked at

  int top() const { return kRuler + kMarks; }
  /// Pixels of a lane.
  int lane() const;
  /// The replicas that have one, from the top in their order: all, or where they are too many those
  /// that end last.
  std::vector<std::size_t> lanes() const;
  /// The replica at a height; -1 = none.
  int replicaAt(int y) const;
};

void paint(QPainter& painter, const TailPicture& picture);

}  // namespace tessera::gui
