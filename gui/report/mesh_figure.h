// SPDX-License-Identifier: GPL-3.0-or-later
// A picture of a plan's mesh: a row per node, a cell per GPU with the roles on it.
#pragma once

#include "gui/document/shared_plan.h"
#include "gui/report/markup.h"

namespace tessera::gui {

/// Nodes that follow one another with the same roles on the same GPUs share a row where there are
/// many; what does not fit into a page is counted.
void draw_mesh(Markup& to, const SharedPlan& plan);

}  // namespace tessera::gui
