// SPDX-License-Identifier: GPL-3.0-or-later
// Names of presets as a list shows them: in the order of the numbers in them, 7b before 14b. Reads
// the folders of presets.
#pragma once

#include <QStringList>

namespace tessera::gui {

/// `kind`, `extension`: of preset_names (cost_models/documents/preset.h).
QStringList sortedPresets(const char* kind, const char* extension);

}  // namespace tessera::gui
