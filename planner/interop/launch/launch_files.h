// What the launchers of tessera-run have in common. For the files of this folder.
#pragma once

#include <string>

#include "cost_models/documents/problem_list.h"
#include "planner/engines/choices.h"
#include "planner/interop/files/export_target.h"

namespace tessera {

struct Plan;

/// plan.json. False and Problems where no launcher starts such ranks or takes these names.
bool add_plan_file(const Plan& plan, const ExportOptions& options, Export& out, Problems& problems);

/// tessera-run's arguments, as words of a shell.
std::string train_words(const ExportOptions& options);

/// That the run configuration lies beside the plan.
void note_run_config(const ExportOptions& options, Export& out);

}  // namespace tessera
