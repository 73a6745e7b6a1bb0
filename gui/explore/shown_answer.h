// SPDX-License-Identifier: GPL-3.0-or-later
// What the window says of the plan that is shown: above the pictures, in the report's tab, and in
// the HTML report.
//
// Words around what the planner computed. GUI thread.
#pragma once

#include <QString>

#include "gui/document/headline.h"
#include "gui/models/session.h"

namespace tessera::gui {

struct ShownAnswer {
  Headline line;
  QString apart;  // why it is slower than what it is held against; empty = nothing is
  QString proof;

  /// What stands behind the line: the cause before the proof.
  QString details() const;
};

/// Precondition: session.plan().
ShownAnswer shown_answer(Session& session);

}  // namespace tessera::gui
