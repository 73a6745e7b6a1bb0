// SPDX-License-Identifier: GPL-3.0-or-later
// A chart of one metric over the steps: smoothed lines over faint ones, and a crosshair that says
// what each line has at a step.
//
// Several of them share the step that is pointed to and the steps in sight: who owns them passes
// both on. GUI thread.
#pragma once

#include <QStringList>
#include <optional>
#include <vector>

#include "gui/views/chart.h"

namespace tessera::gui {

class MetricChart : public Chart {
  Q_OBJECT

 public:
  explicit MetricChart(const QString& metric, QWidget* parent = nullptr);

  /// The first line's steps are those that one can point to; dashed ones are limits, which are
  /// never smoothed. `smoothing`: as in smoothed() (gui/metrics/smoothing.h).
  void showRuns(const std::vector<ChartLine>& lines, double smoothing);
  /// The crosshair stands at the step that is nearest; nullopt: there is none.
  void point(std::optional<double> step);
  /// The step of the crosshair.
  std::optional<double> pointed() const;
  /// The step and then each line with what it has there; empty without a crosshair.
  QStringList said() const;

 signals:
  /// The pointer, `.` or `,` asks for the crosshair at a step, or the pointer left.
  void pointedTo(std::optional<double> step);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  void addFaintLines();

  std::vector<ChartLine> lines_;  // as they were measured
  std::vector<ChartLine> drawn_;  // as they are drawn
  std::optional<double> step_;
};

}  // namespace tessera::gui
