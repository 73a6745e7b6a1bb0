// SPDX-License-Identifier: GPL-3.0-or-later
// Why one plan is slower than another, as the window words it: by how much, what takes longer, and
// in which phases.
//
// Words around what the planner computed. Pure; seconds.
#pragma once

#include <QString>

#include "gui/document/shared_plan.h"
#include "gui/plans/plan_parts.h"
#include "planner/pricing/step_parts.h"

namespace tessera::gui {

struct NamedPlan {
  QString name;  // "row 1", "the plan without actor.tp=8"
  SharedPlan plan;
  const PricedStep* priced = nullptr;  // nullptr = not known, or not yet
};

/// "communication", within a sentence.
QString part_text(StepPart part);

/// "+7.30 s".
QString moreText(double seconds);

/// "communication +7.30 s": what makes `slow` slower, the most of it; empty where that is not
/// known, or nothing takes longer.
QString largest_cause(const NamedPlan& fast, const NamedPlan& slow);

/// "B takes 3.10 s longer than A: communication +3.30 s, computation -200.0 ms (by phase:
/// update_actor +2.90 s)." The faster one may be either.
QString apart_text(const NamedPlan& one, const NamedPlan& other);

}  // namespace tessera::gui
