// Whom a plan is exported for, as one value: the row of a target in export.cc.
//
// Plain values of static lifetime. A new target is a folder of its own with its CMakeLists.txt, and
// one row in export.cc (CONTRIBUTING.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem_list.h"

namespace tessera {

struct Plan;

struct ExportOptions {
  std::string rollout = "vllm";  // engine of verl's rollout, of kVerlRollouts
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

/// What the exported files start.
enum class ExportedProgram { tessera_run, verl, megatron, server };

struct ExportTarget {
  std::string_view name, meaning;  // meaning: what is exported, in a few words
  /// Engines whose plans it takes. A plan for another one is held to what the first can run.
  std::vector<std::string_view> engines;
  ExportedProgram program = ExportedProgram::tessera_run;
  /// Appends the files, without NOTES.md, and notes to `out`; what the target cannot say is a
  /// Problem. The plan has passed the engine's capabilities and has the engine's name.
  void (*write)(const Plan& plan, const ExportTarget& target, const ExportOptions& options,
                Export& out, Problems& problems) = nullptr;
  /// What the user has to do so that roles get GPUs of their types; nullptr = the general advice.
  std::string (*type_advice)(const Plan& plan) = nullptr;
  bool nodes_alike = false;       // it cannot start nodes of several GPU types
  bool megatron_kernels = false;  // of Megatron: which need their launches in order
  bool sleep_mode = false;        // an inference engine gives its memory back between steps
};

}  // namespace tessera
