// SPDX-License-Identifier: GPL-3.0-or-later
// What the planner, the simulator and the rules say in English, in the window's language.
//
// They name things (a class of memory, a verdict) and make sentences with values in them (why a
// degree cannot be, what was found in a file), which gui/translations/sentences.h lists. Both are
// known here by their English words; what is not known stays as it is said. Names that files have
// (phases, roles, settings) are no words. Any thread.
#pragma once

#include <QString>
#include <string_view>

namespace tessera::gui {

QString said(std::string_view english);

/// A report, line by line. Where columns stand two blanks apart each is said by itself, from where
/// it begins on as far as those before it leave room.
QString saidLines(std::string_view english);

}  // namespace tessera::gui
