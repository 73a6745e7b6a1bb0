// SPDX-License-Identifier: GPL-3.0-or-later
// What the planner, the simulator and the rules say in English, in the window's language.
//
// They name things (a class of memory, a verdict) and make sentences with values in them (why a
// degree cannot be, what a phase was slower for). Both are known here by their English words; what
// is not known stays as it is said. Names that files have (phases, roles, settings) are no words.
// Any thread.
#pragma once

#include <QString>
#include <string_view>

namespace tessera::gui {

QString said(std::string_view english);

}  // namespace tessera::gui
