// SPDX-License-Identifier: GPL-3.0-or-later
// The font that a language is written in. GUI thread.
#pragma once

#include <QFont>
#include <QString>

namespace tessera::gui {

/// The font with the characters of the language as its own, where a font that is installed has
/// them. Characters that are filled in from another font have other heights, and Qt 6.4 draws them
/// too high in the fields of a form.
QFont font_of(const QString& language, const QFont& usual);

}  // namespace tessera::gui
