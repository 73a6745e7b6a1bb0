// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/elided_label.h"

#include <QHelpEvent>
#include <QPainter>
#include <QStyle>
#include <QToolTip>

#include "gui/views/fixed_text.h"

namespace tessera::gui {

ElidedLabel::ElidedLabel(const QString& text, Qt::TextElideMode mode) : QLabel(text), mode_(mode) {
  setTextFormat(Qt::PlainText);
}

QSize ElidedLabel::minimumSizeHint() const {
  constexpr int kLetters = 4;
  return {kLetters * fontMetrics().averageCharWidth(), QLabel::minimumSizeHint().height()};
}

void ElidedLabel::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const QRect room = contentsRect();
  style()->drawItemText(&painter, room, static_cast<int>(alignment()), palette(), isEnabled(),
                        fontMetrics().elidedText(text(), mode_, room.width()), foregroundRole());
}

bool ElidedLabel::event(QEvent* event) {
  const bool shortened = fontMetrics().horizontalAdvance(text()) > contentsRect().width();
  if (event->type() == QEvent::ToolTip && toolTip().isEmpty() && shortened) {
    QToolTip::showText(static_cast<QHelpEvent*>(event)->globalPos(), plainTip(text()), this);
    return true;
  }
  return QLabel::event(event);
}

}  // namespace tessera::gui
