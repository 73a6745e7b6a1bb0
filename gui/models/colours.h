// SPDX-License-Identifier: GPL-3.0-or-later
// Colours of roles, memory classes, phases and groups; the same in every view.
//
// Roles and phases follow the palette of Okabe and Ito (2008), which colour-blind readers can tell
// apart. Pure functions.
#pragma once

#include <QColor>
#include <QString>

#include "cost_models/spec/workload.h"

namespace tessera::gui {

QColor colourOf(Role role);
QColor colourOf(Phase phase);
/// Of a class of memory by its name in MemoryModel: "weights", "optimizer", ...
QColor colourOfMemory(const QString& name);
/// Of group `index` of `count`; different for every index below 1,000.
QColor colourOfGroup(int index, int count);
/// Black or white, whichever can be read on `background`.
QColor textOn(const QColor& background);

}  // namespace tessera::gui
