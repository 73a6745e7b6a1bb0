// SPDX-License-Identifier: GPL-3.0-or-later
// The parts of a report, each below its heading: what a session's models say, nothing worked out.
//
// GUI thread, which owns the models.
#pragma once

#include "gui/models/session.h"
#include "gui/report/markup.h"

namespace tessera::gui {

/// What was asked. Names that the question leaves to an opened plan are that plan's.
void add_question(Markup& to, const Document& document);
/// Why nothing fits. Precondition: document.none_fits.
void add_shortage(Markup& to, const Document& document);
/// The plan that is looked at: rivals, step, memory, mesh, pinned plans, why.
/// Precondition: session.plan().
void add_plan(Markup& to, Session& session);
/// The run that is followed: its state, prediction beside measurement, metrics, rules, ranks.
/// Precondition: a run is open.
void add_run(Markup& to, Session& session);

}  // namespace tessera::gui
