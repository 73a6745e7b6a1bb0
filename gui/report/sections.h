// SPDX-License-Identifier: GPL-3.0-or-later
// The parts of a report, each below its heading: what a session's models say, nothing worked out.
//
// GUI thread, which owns the models.
#pragma once

#include "gui/models/session.h"
#include "gui/report/markup.h"
#include "gui/reshard/reshard_facts.h"
#include "gui/timeline/timeline_index.h"

namespace tessera::gui {

/// What was asked. Names that the question leaves to an opened plan are that plan's.
void add_question(Markup& to, const Document& document);
/// Why nothing fits. Precondition: document.none_fits.
void add_shortage(Markup& to, const Document& document);
/// The plan that is looked at: rivals, step, memory, mesh, pinned plans, why.
/// Precondition: session.plan().
void add_plan(Markup& to, Session& session);
/// The plan's step as it was simulated: a lane for each stream of the first of equal ranks.
/// How much longer it is than `plan` says, and by which phases.
void add_timeline(Markup& to, const TimelineIndex& index, const Plan& plan);
/// Who sends whom how many bytes, and the methods side by side.
void add_reshard(Markup& to, const ReshardFacts& facts);
/// The run that is followed: its state, prediction beside measurement, metrics, rules, ranks.
/// Precondition: a run is open.
void add_run(Markup& to, Session& session);

}  // namespace tessera::gui
