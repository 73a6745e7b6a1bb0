// SPDX-License-Identifier: GPL-3.0-or-later
// A question as keys of a JSON map: what window.json and projects have in common.
//
// The plan that a question may go back to (PlanQuery::opened) is not among them. Pure.
#pragma once

#include "cost_models/documents/object_reader.h"
#include "gui/document/plan_query.h"

namespace tessera::gui {

/// Keys that are absent leave the question as it is; what is wrong is a Problem of the reader.
void read_question(ObjectReader& reader, PlanQuery& question);
void add_question(Node& map, const PlanQuery& question);

}  // namespace tessera::gui
