// SPDX-License-Identifier: GPL-3.0-or-later
// A value of a list that cannot be chosen: grey, struck through, with its reason. GUI thread.
#pragma once

#include <QComboBox>
#include <QString>
#include <string>

namespace tessera::gui {

/// "actor.tp=16 does not divide ..."; of a reason that does not begin with the setting, behind it.
QString refusedSentence(const std::string& word, const QString& reason);

/// `sentence`: why it cannot be; empty = it can.
void markValue(QComboBox& box, int item, const QString& sentence);

}  // namespace tessera::gui
