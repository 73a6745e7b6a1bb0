// SPDX-License-Identifier: GPL-3.0-or-later
// Quantities and problems as the window words them.
#pragma once

#include <QString>
#include <cstdint>

#include "cost_models/documents/problem_list.h"

namespace tessera::gui {

/// "1.50 s", "12.3 ms", "4.0 us".
QString secondsText(double seconds);
/// "5.71 GiB", "12.0 MiB", "512 B".
QString bytesText(std::int64_t bytes);
/// "3,480".
QString countText(double count);
/// One line per problem.
QString problemsText(const Problems& problems);

}  // namespace tessera::gui
