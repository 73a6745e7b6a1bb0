// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/form/sorted_presets.h"

#include <QCollator>
#include <algorithm>

#include "cost_models/documents/preset.h"

namespace tessera::gui {

QStringList sortedPresets(const char* kind, const char* extension) {
  QStringList names;
  for (const std::string& name : preset_names(kind, extension)) {
    names << QString::fromStdString(name);
  }
  QCollator order(QLocale::English);
  order.setNumericMode(true);
  std::stable_sort(names.begin(), names.end(), order);
  return names;
}

}  // namespace tessera::gui
