// SPDX-License-Identifier: GPL-3.0-or-later
// A slider over numbers that are far apart: its positions are a list of them, not a range.
//
// Stands beside a number field, which may hold what lies between two positions. GUI thread.
#pragma once

#include <QSlider>
#include <vector>

namespace tessera::gui {

class StepSlider : public QSlider {
  Q_OBJECT

 public:
  explicit StepSlider(const QString& name, QWidget* parent = nullptr);

  /// Ascending, at least one. The position stays where it is nearest to.
  void setSteps(std::vector<double> steps);
  /// The position nearest to the number; says nothing.
  void showNumber(double number);

 signals:
  /// The user went to another position.
  void numberChosen(double number);

 protected:
  /// Only with the focus: the form scrolls under the cursor.
  void wheelEvent(QWheelEvent* event) override;

 private:
  std::vector<double> steps_{0};
  double shown_ = 0;
};

/// From `least` to `most`, powers of two times `unit` and what parts the way to the next one
/// evenly, whole numbers only; `own` is one of them.
std::vector<double> octave_steps(double unit, double least, double most, int parts, double own);
/// 1, 2, 5, 10, 20, ... times a power of ten, from `least` to `most`.
std::vector<double> decade_steps(double least, double most);

}  // namespace tessera::gui
