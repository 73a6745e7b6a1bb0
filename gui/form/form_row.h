// SPDX-License-Identifier: GPL-3.0-or-later
// Rows of a form: a label that names its field, and a number with a slider beside it. GUI thread.
#pragma once

#include <QAbstractSpinBox>
#include <QGridLayout>
#include <QLabel>

#include "gui/form/step_slider.h"

namespace tessera::gui {

/// Its mnemonic goes to the widget, which gets its name for accessibility.
QLabel* labelOf(const QString& text, QWidget* widget);

/// Adds a row at the end: label, field, slider. Who calls it connects the two.
StepSlider* addSliderRow(QGridLayout* layout, const QString& label, QAbstractSpinBox* box);

}  // namespace tessera::gui
