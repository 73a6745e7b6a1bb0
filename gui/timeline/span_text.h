// SPDX-License-Identifier: GPL-3.0-or-later
// Spans and groups of ranks in words. Pure functions.
#pragma once

#include <QString>
#include <cstddef>
#include <string>

#include "gui/timeline/lane_gap.h"
#include "gui/timeline/timeline_index.h"

namespace tessera::gui {

/// "rank 3", "ranks 0-3, 8".
QString ranksText(const RankGroup& group);

/// The ranks of a group; of an opened trace its process.
QString groupText(const TimelineIndex& index, const RankGroup& group);
/// "compute"; of an opened trace its thread, of spans within others nothing.
QString laneText(const TimelineIndex& index, const Lane& lane);

/// What a span of this name is ("F3", "prepare"), where the name does not say it; else empty.
QString meaningText(const std::string& name);

/// What is known of a span, a line of HTML for each fact; `group`: of the ranks that have its
/// equal, nullptr where one rank is looked at.
QString describe(const TimelineIndex& index, std::size_t span, const RankGroup* group);

/// Of a simulated step, by which phases it is longer or shorter than the plan says, the largest
/// first, and what the two do not share.
QString besidePredictedText(const Simulation& simulation, const Plan& plan);

/// What a stream does not do in a gap: how long, what ends it, what that waits for, and what the
/// rank's other streams do; a line of HTML for each fact. `group` as above.
QString describe(const TimelineIndex& index, const LaneGap& gap, const RankGroup* group);

}  // namespace tessera::gui
