// SPDX-License-Identifier: GPL-3.0-or-later
// The numbers behind cells that say quantities in words, for those who calculate with them.
//
// A model that writes "1.50 s" under "Step" has 1.5 under "Step, s" in this role, of its cells and
// of their headers; where a cell has nothing the number is an invalid QVariant. Columns without
// such a header are texts.
#pragma once

#include <qnamespace.h>

namespace tessera::gui {

inline constexpr int kNumberRole = Qt::UserRole + 64;

}  // namespace tessera::gui
