// SPDX-License-Identifier: GPL-3.0-or-later
// What there is to say about a rank's memory over the step, as a colleague would. Pure functions.
#pragma once

#include <QColor>
#include <QString>

#include "gui/step/memory_steps.h"

namespace tessera::gui {

/// "kv_cache", as the planner's account names it.
QString className(std::size_t index);

/// The same in every language.
QColor classColour(std::size_t index);

/// Where the rank holds most, of how much, what meets there, and by how much it is too much.
QString peakText(const MemorySteps& steps, const MemoryLimits& limits);

/// What the rank holds at most while the phase runs; empty where it has no part in it.
QString phaseText(const MemorySteps& steps, Phase phase);

/// "rank 3 at 12.34 s, in gen": a moment's name. `rank 3, at ...` has no phase while it waits.
QString momentText(const MemorySteps& steps, double ns);

/// The moment with its classes, a line each, the fullest first.
QString describe(const MemorySteps& steps, double ns);

}  // namespace tessera::gui
