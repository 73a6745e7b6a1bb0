// SPDX-License-Identifier: GPL-3.0-or-later
// A chart over the steps of a run with a crosshair, which says what each line or column has at a
// step.
//
// Several of them share the step that is pointed to: who owns them passes it on. GUI thread.
#pragma once

#include <QStringList>
#include <optional>
#include <vector>

#include "gui/views/chart.h"

namespace tessera::gui {

class StepChart : public Chart {
  Q_OBJECT

 public:
  explicit StepChart(const QString& title, QWidget* parent = nullptr);

  /// The first line's steps are those that one can point to; dashed ones are limits, of which the
  /// crosshair says nothing.
  void showSteps(const QString& unit, const std::vector<ChartLine>& lines, bool from_zero = false);
  void showStepColumns(const QString& unit, const std::vector<double>& steps,
                       const std::vector<ChartStack>& stacks);

  /// The crosshair stands at the step that is nearest; nullopt: there is none.
  void point(std::optional<double> step);
  /// The step of the crosshair.
  std::optional<double> pointed() const;
  /// The step and then each line with what it has there; empty without a crosshair.
  QStringList said() const;
  /// Where that stands: beside the step, where it covers the least of the lines.
  QRect textBox() const;

 signals:
  /// The pointer, `.` or `,` asks for the crosshair at a step, or the pointer left.
  void pointedTo(std::optional<double> step);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

  /// What the crosshair says of the point of a line, by its number, behind the line's name.
  virtual QString valueText(std::size_t line, std::size_t point) const;
  /// What it is said of, as it was measured.
  const std::vector<ChartLine>& lines() const { return lines_; }
  void setLines(const std::vector<ChartLine>& lines) { lines_ = lines; }

 private:
  /// Of a text beside the step, which is at `x`, `apart` pixels from it.
  QRect freest(QSize size, int x, int apart) const;
  std::size_t drawnIn(const QRect& box) const;

  std::vector<ChartLine> lines_;
  std::optional<double> step_;
};

}  // namespace tessera::gui
