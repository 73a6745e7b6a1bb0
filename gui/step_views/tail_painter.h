// SPDX-License-Identifier: GPL-3.0-or-later
// The active sequences of every replica over the generation on any painter: a lane for each, above
// them the moments when half and nine tenths of all have ended, and the tail shaded.
//
// Pure drawing of a TailPicture. The cost grows with pixels and lanes in sight.
#pragma once

#include <QFont>
#include <QPainter>
#include <QPalette>
#include <QRect>
#include <QSize>
#include <optional>
#include <vector>

#include "gui/step/rollout_steps.h"

namespace tessera::gui {

struct TailPicture {
  static constexpr int kNames = 132, kRuler = 24, kMarks = 20, kBelow = 18, kLeastLane = 4,
                       kMostLane = 64;

  RolloutSteps steps;
  TimeAxis axis;  // of the pixels right of the names, from the start of the call
  int width = 1;  // of them
  QSize size;
  QPalette palette;
  QFont font;
  std::optional<double> moment;
  int replica = -1;  // that is looked at

  int top() const { return kRuler + kMarks; }
  /// Pixels of a lane.
  int lane() const;
  /// The replicas that have one, from the top: all, or where they are too many those that end last.
  std::vector<std::size_t> lanes() const;
  /// The replica at a height; -1 = none.
  int replicaAt(int y) const;
};

void paint(QPainter& painter, const TailPicture& picture);

}  // namespace tessera::gui
