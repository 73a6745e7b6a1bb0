// A plan as files that other tools accept.
//
// Files come back as text, nothing is written; of the model's folder is read whether it has
// weights. Every name of the user's is quoted, scripts are shellcheck-clean; a plan that the target
// cannot express is refused with the reason, by the engine's capability table (capabilities.h) and,
// for verl, by what its keys can say.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/interop/setting.h"
#include "planner/plan/plan.h"

namespace tessera {

enum class ExportTarget {
  verl,
  verl_megatron,
  megatron,
  vllm,
  sglang,
  torchrun,
  slurm,
  kubernetes,
  ray,
};
inline constexpr std::array kEveryExportTarget{
    ExportTarget::verl,  ExportTarget::verl_megatron, ExportTarget::megatron,
    ExportTarget::vllm,  ExportTarget::sglang,        ExportTarget::torchrun,
    ExportTarget::slurm, ExportTarget::kubernetes,    ExportTarget::ray};
std::string_view name_of(ExportTarget target);
/// nullopt and a Problem with did-you-mean for an unknown name.
std::optional<ExportTarget> export_target_from(std::string_view name, Problems& problems);

struct ExportOptions {
  std::string rollout = "vllm";  // engine of verl's rollout: "vllm" or "sglang"
  std::string model;  // path or hub name; empty = where the plan's weights are (weights_of), or a
                      // variable that the script asks for
  std::string train_files, val_files;  // of verl; empty = variables that the script asks for
  std::string name = "tessera";        // of the job
  std::string image;                   // container of a TrainJob
  std::string run_config = "run.yaml", run_folder = "RUN";  // of tessera-run
};

struct ExportedFile {
  std::string name, text;
  bool executable = false;
};

struct Export {
  std::vector<ExportedFile> files;
  std::vector<std::string> notes;  // also in NOTES.md, which is among the files
};

/// nullopt when anything was appended to `problems`.
std::optional<Export> export_plan(const Plan& plan, ExportTarget target,
                                  const ExportOptions& options, Problems& problems);

/// Variables that a job of this target should have, each with its reason: the plan's that apply,
/// and the target's own.
std::vector<EnvironmentVariable> environment_of(const Plan& plan, ExportTarget target);

}  // namespace tessera
