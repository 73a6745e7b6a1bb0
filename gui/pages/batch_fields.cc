// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/pages/batch_fields.h"

#include <QSignalBlocker>
#include <algorithm>
#include <cmath>

#include "gui/pages/form_row.h"

namespace tessera::gui {

BatchFields::BatchFields(QGridLayout* layout, QObject* parent)
    : QObject(parent),
      prompts_(add(layout, "Prompts a s&tep")),
      samples_(add(layout, "Samp&les a prompt")),
      tokens_(add(layout, "Response to&kens")) {
  tokens_.box->setToolTip(
      "The mean length of a response; the limit and all other lengths change by the same factor");
}

BatchFields::Field BatchFields::add(QGridLayout* layout, const QString& label) {
  auto* box = new QSpinBox;
  box->setRange(1, 1 << 30);  // what a workload may have its reader says
  box->setKeyboardTracking(false);
  StepSlider* slider = addSliderRow(layout, label, box);
  connect(slider, &StepSlider::numberChosen, box,
          [box](double chosen) { box->setValue(static_cast<int>(chosen)); });
  connect(slider, &QSlider::sliderReleased, this, &BatchFields::changed);
  connect(box, &QSpinBox::valueChanged, this, [this, slider](int value) {
    slider->showNumber(value);
    emit changed();
  });
  return {box, slider};
}

void BatchFields::show(Field& field, std::int64_t own, std::int64_t asked,
                       const std::vector<double>& steps) {
  const QSignalBlocker quiet(field.box);
  field.own = own;
  field.box->setEnabled(own > 0);
  field.slider->setEnabled(own > 0);
  if (own <= 0) return;
  field.slider->setSteps(steps);
  const std::int64_t most = field.box->maximum();
  field.box->setValue(static_cast<int>(std::min(asked > 0 ? asked : own, most)));
  field.slider->showNumber(field.box->value());
}

void BatchFields::show(const std::optional<Workload>& own, const WorkloadChange& change) {
  constexpr double kFarther = 16;
  const Workload workload = own.value_or(Workload{});
  const std::int64_t mean = std::llround(workload.response_tokens.mean);
  const auto prompts = static_cast<double>(workload.prompts_per_step);
  const auto samples = static_cast<double>(workload.samples_per_prompt);
  const auto tokens = static_cast<double>(mean);
  show(prompts_, workload.prompts_per_step, change.prompts_per_step,
       octave_steps(static_cast<double>(workload.mini_batches), 1, kFarther * prompts, 2, prompts));
  show(samples_, own ? workload.samples_per_prompt : 0, change.samples_per_prompt,
       octave_steps(1, 1, std::max(64.0, samples), 4, samples));
  show(tokens_, mean, change.response_tokens,
       octave_steps(1, tokens / kFarther, kFarther * tokens, 4, tokens));
}

std::int64_t BatchFields::asked(const Field& field) {
  return field.own > 0 && field.box->value() != field.own ? field.box->value() : 0;
}

WorkloadChange BatchFields::change() const {
  return {asked(prompts_), asked(samples_), asked(tokens_)};
}

bool BatchFields::isSliding() const {
  return prompts_.slider->isSliderDown() || samples_.slider->isSliderDown() ||
         tokens_.slider->isSliderDown();
}

}  // namespace tessera::gui
