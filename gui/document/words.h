// SPDX-License-Identifier: GPL-3.0-or-later
// What the window says, as Qt's translators find it.
//
// Texts with values have %1, %2 in them, so that another language may order them otherwise. No
// translation is there so far, and most texts do not go through here yet. Any thread.
#pragma once

#include <QCoreApplication>

namespace tessera::gui {

struct Words {
  Q_DECLARE_TR_FUNCTIONS(Words)
};

}  // namespace tessera::gui
