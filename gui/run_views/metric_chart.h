// SPDX-License-Identifier: GPL-3.0-or-later
// A chart of one metric over the steps: smoothed lines over faint ones, whose crosshair says both.
//
// Several of them share the steps in sight as well: who owns them passes those on. GUI thread.
#pragma once

#include <vector>

#include "gui/run_views/step_chart.h"

namespace tessera::gui {

class MetricChart : public StepChart {
  Q_OBJECT

 public:
  explicit MetricChart(const QString& metric, QWidget* parent = nullptr);

  /// Dashed lines are limits, which are never smoothed. `smoothing`: as in smoothed()
  /// (gui/metrics/smoothing.h).
  void showRuns(const std::vector<ChartLine>& lines, double smoothing);

 protected:
  QString valueText(std::size_t line, std::size_t point) const override;

 private:
  void addFaintLines();

  std::vector<ChartLine> drawn_;  // as they are drawn
};

}  // namespace tessera::gui
