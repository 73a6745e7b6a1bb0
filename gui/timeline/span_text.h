// SPDX-License-Identifier: GPL-3.0-or-later
// Spans and groups of ranks in words. Pure functions.
#pragma once

#include <QString>
#include <cstddef>

#include "gui/timeline/timeline_index.h"

namespace tessera::gui {

/// "rank 3", "ranks 0-3, 8".
QString ranksText(const RankGroup& group);

/// What is known of a span, a line of HTML for each fact; `group`: of the ranks that have its
/// equal, nullptr where one rank is looked at.
QString describe(const TimelineIndex& index, std::size_t span, const RankGroup* group);

}  // namespace tessera::gui
