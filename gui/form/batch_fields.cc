// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/form/batch_fields.h"

#include <QSignalBlocker>
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "cost_models/spec/preset_algorithms.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/form/form_row.h"

namespace tessera::gui {

BatchFields::BatchFields(QGridLayout* layout, QObject* parent) : QObject(parent) {
  addAlgorithm(layout);
  prompts_ = add(layout, Words::tr("Prompts a s&tep"));
  connect(prompts_.box, &QSpinBox::editingFinished, this, &BatchFields::roundPrompts);
  samples_ = add(layout, Words::tr("Samp&les a prompt"));
  prompt_tokens_ = add(layout, Words::tr("Prompt tokens"));
  tokens_ = add(layout, Words::tr("Response to&kens"));
  addLimit(layout);
  tokens_.box->setToolTip(Words::tr(
      "The mean length of a response; all other lengths change by the same factor, and the limit "
      "where it is not set"));
}

void BatchFields::addAlgorithm(QGridLayout* layout) {
  algorithm_ = new QComboBox;
  algorithm_->setToolTip(
      Words::tr("PPO has a critic, GRPO compares the samples of a prompt with one another; a "
                "workload that lists its own calls keeps them"));
  const int row = layout->rowCount();
  layout->addWidget(labelOf(Words::tr("&Algorithm"), algorithm_), row, 0);
  layout->addWidget(algorithm_, row, 1, 1, 2);
  connect(algorithm_, &QComboBox::currentTextChanged, this, [this] {
    emit algorithmChanged();
    emit changed();
  });
}

void BatchFields::showAlgorithm(const std::optional<Workload>& own, const std::string& asked) {
  own_algorithm_ = own ? own->algorithm : std::string();
  const QSignalBlocker quiet(algorithm_);
  algorithm_->clear();
  const bool preset = is_preset_algorithm(own_algorithm_);
  for (const std::string_view name : kPresetAlgorithms) {
    if (preset) algorithm_->addItem(QString::fromStdString(std::string(name)));
  }
  if (own && !preset) algorithm_->addItem(QString::fromStdString(own_algorithm_));
  algorithm_->setEnabled(preset);
  algorithm_->setCurrentText(
      QString::fromStdString(preset && !asked.empty() ? asked : own_algorithm_));
}

void BatchFields::addLimit(QGridLayout* layout) {
  limit_ = new QSpinBox;
  limit_->setRange(1, 1 << 30);
  limit_->setToolTip(Words::tr(
      "The limit of a response's length; until it is set here it changes with the mean by the same "
      "factor"));
  const int row = layout->rowCount();
  layout->addWidget(labelOf(Words::tr("Longest response"), limit_), row, 0);
  layout->addWidget(limit_, row, 1, 1, 2);
  connect(limit_, &QSpinBox::valueChanged, this, [this](int value) {
    longest_ = 0;
    if (value != longest()) longest_ = value;
    emit changed();
  });
  connect(tokens_.box, &QSpinBox::valueChanged, this, &BatchFields::showLimit);
}

// That of the workload with the mean that is asked.
std::int64_t BatchFields::longest() const {
  return own_ && tokens_.own > 0 ? resized(*own_, change()).response_tokens.max : 0;
}

void BatchFields::showLimit() {
  const QSignalBlocker quiet(limit_);
  const std::int64_t tokens = longest();
  limit_->setEnabled(tokens > 0);
  if (tokens > 0) limit_->setValue(static_cast<int>(std::min<std::int64_t>(tokens, 1 << 30)));
}

BatchFields::Field BatchFields::add(QGridLayout* layout, const QString& label) {
  auto* box = new QSpinBox;
  box->setRange(1, 1 << 30);  // what a workload may have its reader says
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
  showAlgorithm(own, change.algorithm);
  const Workload workload = own.value_or(Workload{});
  const std::int64_t mean = std::llround(workload.response_tokens.mean);
  const auto prompts = static_cast<double>(workload.prompts_per_step);
  const auto samples = static_cast<double>(workload.samples_per_prompt);
  const auto tokens = static_cast<double>(mean);
  show(prompts_, workload.prompts_per_step, change.prompts_per_step,
       octave_steps(static_cast<double>(workload.mini_batches), 1, kFarther * prompts, 2, prompts));
  show(samples_, own ? workload.samples_per_prompt : 0, change.samples_per_prompt,
       octave_steps(1, 1, std::max(64.0, samples), 4, samples));
  const std::int64_t unit = std::max<std::int64_t>(1, workload.mini_batches);
  prompts_.box->setSingleStep(static_cast<int>(std::min<std::int64_t>(unit, 1 << 20)));
  prompts_.box->setToolTip(
      unit > 1 ? Words::tr("A multiple of %1, the mini-batches of a step").arg(unit) : QString());
  const auto prompt = static_cast<double>(workload.prompt_tokens);
  show(prompt_tokens_, workload.prompt_tokens, change.prompt_tokens,
       octave_steps(1, prompt / kFarther, kFarther * prompt, 4, prompt));
  show(tokens_, mean, change.response_tokens,
       octave_steps(1, tokens / kFarther, kFarther * tokens, 4, tokens));
  own_ = own;
  longest_ = change.longest_response;
  showLimit();
}

void BatchFields::roundPrompts() {
  const int unit = prompts_.box->singleStep();
  const int units = std::max(1, (prompts_.box->value() + unit / 2) / unit);
  prompts_.box->setValue(units * unit);
}

std::int64_t BatchFields::asked(const Field& field) {
  return field.own > 0 && field.box->value() != field.own ? field.box->value() : 0;
}

WorkloadChange BatchFields::change() const {
  const std::string algorithm = algorithm_->currentText().toStdString();
  return {.prompts_per_step = asked(prompts_),
          .samples_per_prompt = asked(samples_),
          .response_tokens = asked(tokens_),
          .longest_response = longest_,
          .prompt_tokens = asked(prompt_tokens_),
          .algorithm = algorithm == own_algorithm_ ? std::string() : algorithm};
}

bool BatchFields::isSliding() const {
  const std::array fields{&prompts_, &samples_, &prompt_tokens_, &tokens_};
  return std::any_of(fields.begin(), fields.end(),
                     [](const Field* field) { return field->slider->isSliderDown(); });
}

}  // namespace tessera::gui
