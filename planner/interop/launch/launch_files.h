// What launchers have in common. For the files of this folder, and of others that write jobs.
#pragma once

#include <string>

#include "cost_models/documents/problem_list.h"
#include "planner/engines/choices.h"
#include "planner/interop/files/export_target.h"
#include "planner/interop/files/script.h"

namespace tessera {

struct Plan;

/// False and Problems where the ranks do not fill whole nodes, or a name is none of a job's.
bool check_job(const Plan& plan, const ExportOptions& options, Problems& problems);

/// plan.json. False and Problems where no launcher starts such ranks or takes these names.
bool add_plan_file(const Plan& plan, const ExportOptions& options, Export& out, Problems& problems);

/// tessera-run's arguments, as words of a shell.
std::string train_words(const ExportOptions& options);

/// Where the pods of a job mount the volume that its results lie on.
inline constexpr const char* kRunsFolder = "/runs";
/// A path that is not absolute, on that volume.
std::string on_runs_volume(const std::string& path);
/// What a job of pods refers to and cannot bring: `created` (kubectl's commands) and the volume,
/// which `kept` may lie on, too.
void note_before_pods(const ExportOptions& options, JobShape shape, const std::string& created,
                      const std::string& kept, Export& out);
/// That pods of several nodes need network cards; `whom`: "the pods".
std::string network_card_advice(const std::string& whom);

/// That the run configuration lies beside the plan.
void note_run_config(const ExportOptions& options, Export& out);

}  // namespace tessera
