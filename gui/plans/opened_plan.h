// SPDX-License-Identifier: GPL-3.0-or-later
// A plan as the window shows it once its file was read.
//
// What a search certified is shown as it is. A plan that was edited since says figures of another
// one: it is shown as the planner prices it now, with a notice that says by how much the file was
// off, as `tessera explain` does. The other plans of its file stood beside the one that was edited,
// and are left out. Pure; seconds.
#pragma once

#include <QString>

#include "gui/document/shared_plan.h"

namespace tessera::gui {

struct OpenedPlan {
  SharedPlan plan;
  QString notice;  // empty = it is as the file says
};

OpenedPlan opened(Plan stored);

}  // namespace tessera::gui
