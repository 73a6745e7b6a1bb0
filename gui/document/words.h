// SPDX-License-Identifier: GPL-3.0-or-later
// What the window says, as Qt's translators find it.
//
// Every text that a person reads goes through here, once it is shown and not before: the language
// is chosen when the program starts (language.h). Texts with values have %1, %2 in them, so that
// another language may order them otherwise. Translations are in gui/translations. Any thread.
#pragma once

#include <QCoreApplication>

namespace tessera::gui {

struct Words {
  Q_DECLARE_TR_FUNCTIONS(Words)
};

}  // namespace tessera::gui
