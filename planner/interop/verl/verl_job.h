// A verl job as its launchers share it: the settings, and the script that starts the trainer.
//
// Plain values and pure functions. For the files of this folder.
#pragma once

#include <optional>
#include <string>

#include "planner/interop/files/export_target.h"
#include "planner/interop/verl/verl_settings.h"

namespace tessera {

/// How Ray gets onto the nodes: the user starts it there (of several nodes), a running cluster
/// takes the job, or the launcher's own files start it.
enum class RayStart { by_hand, running, by_launcher };

struct VerlJob {
  VerlSettings made;
  std::string array;   // the settings as the words of a script's array
  std::string demand;  // lines of a script that stop where one of the variables is missing
};

/// nullopt and Problems where a key cannot say what the plan asks.
std::optional<VerlJob> verl_job(const Plan& plan, const ExportOptions& options, RayStart ray,
                                Problems& problems);

/// run.sh, which starts the trainer where Ray runs.
ExportedFile verl_run_script(const Plan& plan, const ExportTarget& target, const VerlJob& job);

/// Files that the settings refer to, if any.
void add_files_beside(const VerlJob& job, Export& out);

}  // namespace tessera
