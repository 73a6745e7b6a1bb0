// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/form/step_slider.h"

#include <QSignalBlocker>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>
#include <utility>

#include "gui/document/words.h"

namespace tessera::gui {

StepSlider::StepSlider(const QString& name, QWidget* parent) : QSlider(Qt::Horizontal, parent) {
  setAccessibleName(Words::tr("Slider: %1").arg(name));
  setPageStep(2);
  setMinimumWidth(60);
  setFocusPolicy(Qt::StrongFocus);
  setRange(0, 0);
  connect(this, &QSlider::valueChanged, this, [this](int position) {
    shown_ = steps_[static_cast<std::size_t>(position)];
    emit numberChosen(shown_);
  });
}

void StepSlider::setSteps(std::vector<double> steps) {
  const QSignalBlocker quiet(this);
  steps_ = std::move(steps);
  setRange(0, static_cast<int>(steps_.size()) - 1);
  showNumber(shown_);
}

void StepSlider::showNumber(double number) {
  const QSignalBlocker quiet(this);
  shown_ = number;
  const auto nearest = std::min_element(steps_.begin(), steps_.end(), [number](double a, double b) {
    return std::abs(a - number) < std::abs(b - number);
  });
  setValue(static_cast<int>(nearest - steps_.begin()));
}

void StepSlider::wheelEvent(QWheelEvent* event) {
  hasFocus() ? QSlider::wheelEvent(event) : event->ignore();
}

std::vector<double> octave_steps(double unit, double least, double most, int parts, double own) {
  std::vector<double> steps{own};
  for (double power = 1; unit * power <= most; power *= 2) {
    for (int part = 0; part < parts; ++part) {
      const double factor = power * (1 + static_cast<double>(part) / parts);
      const double step = unit * factor;
      if (factor == std::floor(factor) && step >= least && step <= most) steps.push_back(step);
    }
  }
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

std::vector<double> decade_steps(double least, double most) {
  std::vector<double> steps;
  for (int power = static_cast<int>(std::floor(std::log10(least))); std::pow(10.0, power) <= most;
       ++power) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double step = factor * std::pow(10.0, power);
      if (step >= least * (1 - 1e-9) && step <= most * (1 + 1e-9)) steps.push_back(step);
    }
  }
  return steps;
}

}  // namespace tessera::gui
