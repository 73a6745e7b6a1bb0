// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/fixed_text.h"

#include <QFontDatabase>

namespace tessera::gui {

void showAsFixedText(QPlainTextEdit& text, const QString& name) {
  text.setReadOnly(true);
  text.setTabChangesFocus(true);
  text.setLineWrapMode(QPlainTextEdit::NoWrap);
  text.setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  text.setAccessibleName(name);
}

QString plainTip(const QString& text) {
  return Qt::mightBeRichText(text) ? Qt::convertFromPlainText(text) : text;
}

}  // namespace tessera::gui
