// SPDX-License-Identifier: GPL-3.0-or-later
// A rank's memory over time on any painter: the phases on top, below them the classes one above the
// other, with what plans may use and what the device has as lines.
//
// Pure drawing: what is shown stands in a MemoryPicture, and both the window and the export paint
// it. The cost grows with pixels and classes, not with the samples.
#pragma once

#include <QRect>
#include <optional>

#include "gui/step/memory_steps.h"
#include "gui/step_views/time_painter.h"

namespace tessera::gui {

struct MemoryPicture : TimePicture {
  static constexpr int kScale = 62, kRuler = 24, kPhases = 22, kBelow = 8;

  MemorySteps steps;
  MemoryLimits limits;
  std::optional<Phase> phase;  // that is looked at

  QRect plot() const {
    const int top = kRuler + kPhases;
    return {kScale, top, width, std::max(1, size.height() - top - kBelow)};
  }
  /// What the scale reaches to. The lines are in sight unless the memory is far below them.
  double most() const;
  double yOf(double bytes) const;
};

void paint(QPainter& painter, const MemoryPicture& picture);

}  // namespace tessera::gui
