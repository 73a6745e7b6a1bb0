// SPDX-License-Identifier: GPL-3.0-or-later
// The sentences that planner, simulator and readers make, with their values as %1 to %9 in the
// order in which these stand; their translations are in gui/translations.
//
// In each list the longer one stands first where another is its beginning. Static; any thread.
#pragma once

#include <span>

namespace tessera::gui {

/// Placements, how surely a plan fits, why nothing does, and what would.
std::span<const char* const> planSentences();
/// Lines of the reports: of a plan, of what a run taught, of advice, of rules.
std::span<const char* const> reportSentences();
/// Why a phase took longer, what a reshard moved, links.
std::span<const char* const> runSentences();
/// What an exported job asks of its user.
std::span<const char* const> jobSentences();
/// What was found in a file, and what was expected. Its last ones are the shortest of all.
std::span<const char* const> fileSentences();

}  // namespace tessera::gui
