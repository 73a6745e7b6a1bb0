// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/form/marked_value.h"

#include <QFont>
#include <QPalette>
#include <QVariant>

#include "gui/document/words.h"

namespace tessera::gui {

QString refusedSentence(const std::string& word, const QString& reason) {
  const QString setting = QString::fromStdString(word);
  return reason.startsWith(setting) ? reason : Words::tr("%1 cannot be: %2").arg(setting, reason);
}

void markValue(QComboBox& box, int item, const QString& sentence) {
  const bool cannot = !sentence.isEmpty();
  QFont font = box.font();
  font.setStrikeOut(true);  // not by its colour alone
  box.setItemData(item,
                  cannot ? box.palette().brush(QPalette::Disabled, QPalette::Text) : QVariant(),
                  Qt::ForegroundRole);
  box.setItemData(item, cannot ? font : QVariant(), Qt::FontRole);
  for (const int role : {int{Qt::ToolTipRole}, int{Qt::AccessibleDescriptionRole}}) {
    box.setItemData(item, cannot ? sentence : QVariant(), role);
  }
}

}  // namespace tessera::gui
