// SPDX-License-Identifier: GPL-3.0-or-later
// A report of what a window shows, as one file that any browser opens: the plan that answers the
// question, or why there is none, and the run that is followed.
//
// The file holds its pictures itself, runs nothing and fetches nothing: it has no script, and tells
// the browser to refuse any. It is HTML and well-formed XML. GUI thread.
#pragma once

#include <QString>

#include "gui/models/session.h"

namespace tessera::gui {

/// There is a plan that answers the question, a reason why nothing does, or a run.
bool has_report(Session& session);
/// `written`: a time, as ISO 8601. Precondition: has_report().
QString report_of(Session& session, const QString& written);
/// Throws Error(io); a file that was there is unchanged then.
void write_report(Session& session, const QString& file);

}  // namespace tessera::gui
