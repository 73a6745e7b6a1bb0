// SPDX-License-Identifier: GPL-3.0-or-later
// What of a chart is in sight: all of it until the user chooses otherwise.
#include <utility>

#include "gui/views/chart.h"

namespace tessera::gui {

void Chart::finish(std::function<void()> ranges) {
  ranges_ = std::move(ranges);
  fitTexts();
  if (fitted_) setRanges();
  replot(rpQueuedRefresh);  // it may be the painting that asks for it
}

void Chart::setRanges() {
  if (!ranges_) return;
  setting_ = true;
  ranges_();
  setting_ = false;
}

// Those of what was drawn before would be taken for its own.
void Chart::setEmptyRanges() {
  for (QCPAxis* axis : {xAxis, yAxis}) axis->setRange(0, 1);
}

void Chart::fit() {
  fitted_ = true;
  setRanges();
  replot(rpQueuedRefresh);
}

}  // namespace tessera::gui
