// SPDX-License-Identifier: GPL-3.0-or-later
// A script or configuration of verl, Megatron-LM, vLLM or SGLang as a plan, as `tessera import`
// reads it: priced, and from no search. Pure but for the files that it reads.
#pragma once

#include <QString>
#include <optional>
#include <string>

#include "cost_models/documents/problem_list.h"
#include "gui/document/plan_query.h"
#include "gui/document/shared_plan.h"

namespace tessera::gui {

struct ImportedPlan {
  SharedPlan plan;
  QString notice;  // what was assumed or left out, a line each; empty = nothing
};

/// On the cluster of the question, which the file does not state. nullopt and Problems where the
/// file, or that cluster, cannot be read.
std::optional<ImportedPlan> imported_plan(const std::string& file, const PlanQuery& question,
                                          Problems& problems);

}  // namespace tessera::gui
