// SPDX-License-Identifier: GPL-3.0-or-later
// Charts over the steps of a run: reward, KL divergence, throughput, phases, reshards.
//
// Each follows the session's run and draws anew when a step comes. GUI thread.
#pragma once

#include <string>
#include <vector>

#include "gui/models/session.h"
#include "gui/views/chart.h"

namespace tessera::gui {

/// An empty chart that `draw` fills from the run whenever its steps change.
Chart* chartOfSteps(Session& session, const QString& title,
                    void (*draw)(Chart& chart, RunFollower& run));

/// A metric of the run that is followed, the same one of those beside it, and as dashed lines the
/// limits that the rules set it.
std::vector<ChartLine> linesOf(RunFollower& run, const std::string& metric, const QString& name,
                               const QColor& colour);

}  // namespace tessera::gui
