// SPDX-License-Identifier: GPL-3.0-or-later
// The settings that a question fixes, by the fields of the form that they stand in. Pure.
#pragma once

#include <QString>
#include <QStringList>
#include <string>
#include <vector>

#include "gui/form/degree_grid.h"

namespace tessera::gui {

inline const QString kFree = "";  // data of the entry that fixes no placement

/// Words of the fixed settings: "placement=a | b" may have spaces, others have none.
struct FixedWords {
  DegreeGrid::Degrees degrees;
  QString placement = kFree;
  QStringList others;
};
FixedWords sorted(const std::vector<std::string>& fixed, const DegreeGrid& grid);

}  // namespace tessera::gui
