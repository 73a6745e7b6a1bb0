// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/form/form_row.h"

#include <QHBoxLayout>

namespace tessera::gui {

QLabel* labelOf(const QString& text, QWidget* widget) {
  auto* label = new QLabel(text);
  label->setBuddy(widget);
  widget->setAccessibleName(QString(text).remove('&'));
  return label;
}

StepSlider* addSliderRow(QGridLayout* layout, const QString& label, QAbstractSpinBox* box) {
  const int row = layout->rowCount();
  layout->addWidget(labelOf(label, box), row, 0);
  auto* slider = new StepSlider(box->accessibleName());
  auto* both = new QHBoxLayout;
  both->addWidget(box);
  both->addWidget(slider, 1);
  layout->addLayout(both, row, 1, 1, 2);
  return slider;
}

}  // namespace tessera::gui
