// A plan as files that other tools accept.
//
// Files come back as text, nothing is written; of the model's folder is read whether it has
// weights. Every name of the user's is quoted, scripts are shellcheck-clean; a plan that the target
// cannot express is refused with the reason, by what its engine can run (engine_check.h) and, for
// verl, by what its keys can say.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "planner/interop/files/environment.h"
#include "planner/interop/files/export_target.h"

namespace tessera {

struct Plan;

/// The rows of export.cc in the order in which they are listed to users.
const std::vector<ExportTarget>& every_export_target();

/// "verl, verl-megatron, ...": the targets' names.
std::string export_target_names();

/// nullptr and a Problem with did-you-mean for an unknown name.
const ExportTarget* export_target_from(std::string_view name, Problems& problems);

/// nullopt when anything was appended to `problems`.
std::optional<Export> export_plan(const Plan& plan, const ExportTarget& target,
                                  const ExportOptions& options, Problems& problems);

}  // namespace tessera
