// SPDX-License-Identifier: GPL-3.0-or-later
// What the window says, in the language that was chosen when it was made.
//
// Every text that people read goes through Words::tr; texts with values have %1, %2 in them, so
// that another language may order them otherwise. gui/translations has them in other languages.
// Names of the planner's (phases, roles, settings, file keys) and its prose stay as they are. Any
// thread.
#pragma once

#include <QCoreApplication>

namespace tessera::gui {

struct Words {
  Q_DECLARE_TR_FUNCTIONS(Words)
};

}  // namespace tessera::gui
