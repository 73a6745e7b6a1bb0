// SPDX-License-Identifier: GPL-3.0-or-later
// Colours of roles, memory classes, phases, groups, amounts and messages; the same in every view.
//
// Roles, phases and memory classes have palettes of their own: a colour means one thing. Roles
// follow Okabe and Ito (2008), which colour-blind readers can tell apart. Pure functions.
#pragma once

#include <QColor>
#include <QPalette>
#include <QString>

#include "cost_models/spec/workload.h"

namespace tessera::gui {

QColor colourOf(Role role);
QColor colourOf(Phase phase);
/// Of a class of memory by its name in memory_classes (cost_models/memory.h).
QColor colourOfMemory(const QString& name);
/// Of group `index` of `count`; different for every index below 1,000.
QColor colourOfGroup(int index, int count);
enum class Theme { light, dark };
/// Of an amount between nothing (0) and all (1), clamped: one scale from the theme's background to
/// its opposite, whose lightness alone tells amounts apart, in steps of a twentieth.
QColor colourOfShare(double share, Theme theme);
/// Black or white, whichever can be read on `background`.
QColor textOn(const QColor& background);

/// Rich text: a square of the colour, and what it means.
QString swatch(const QColor& colour, const QString& text);

/// The ratio of WCAG 2.1, from 1 to 21.
double contrast(const QColor& a, const QColor& b);

QPalette paletteOf(Theme theme);
/// Of what one types or chooses in: its rim is seen in both themes.
QPalette fieldPaletteOf(Theme theme);
Theme themeOf(const QPalette& palette);

/// What a message is: an answer, something to look at, something wrong.
enum class Tone { calm, warning, bad };
struct MessageColours {
  QColor background, text;
};
MessageColours coloursOf(Tone tone, Theme theme);

}  // namespace tessera::gui
