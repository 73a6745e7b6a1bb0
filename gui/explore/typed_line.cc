// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/explore/typed_line.h"

#include <QEvent>
#include <QFocusEvent>
#include <utility>

namespace tessera::gui {

TypedLine::TypedLine(QWidget& form) : QObject(&form) {
  for (QLineEdit* line : form.findChildren<QLineEdit*>()) {
    connect(line, &QLineEdit::textEdited, this, [this, line] { now_ = line; });
    // A list and a number have the focus for their lines.
    QWidget* const proxy = line->focusProxy();
    (proxy != nullptr ? proxy : line)->installEventFilter(this);
  }
}

bool TypedLine::goesOn() {
  const bool same = now_ != nullptr && now_ == last_;
  last_ = std::exchange(left_, false) ? nullptr : now_;
  now_ = nullptr;
  return same;
}

// A list that opens, or another window, does not take the line away.
bool TypedLine::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::FocusOut) {
    const Qt::FocusReason reason = static_cast<QFocusEvent*>(event)->reason();
    const bool stays = reason == Qt::PopupFocusReason || reason == Qt::ActiveWindowFocusReason;
    if (!stays && now_ != nullptr) left_ = true;
    if (!stays && now_ == nullptr) last_ = nullptr;
  }
  return QObject::eventFilter(watched, event);
}

}  // namespace tessera::gui
