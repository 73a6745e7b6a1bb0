// A folder of low-rank adapters as peft 0.18 writes and reads it: adapter_config.json beside
// adapter_model.safetensors.
//
// Tensors are named as peft names them, A [rank, in] and B [out, rank] of each matrix. Plain
// functions; any thread (of one process, where they write).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cost_models/adapters.h"
#include "cost_models/documents/problem_list.h"
#include "executor/checkpoint/model_folder.h"
#include "executor/checkpoint/safetensors.h"

namespace tessera {

struct PeftSettings {
  Lora lora;
  std::string
      base_model;  // folder or name of the model that they were trained beside; may be empty
};

/// What the adapters of a folder are; nullopt with a Problem for each thing that Tessera's are not
/// (rank-stabilised scales, DoRA, biases, ranks by module, a changed base, ...).
std::optional<PeftSettings> read_peft_settings(const std::filesystem::path& folder,
                                               Problems& problems);

/// The folder's tensors; nullopt with Problems.
std::optional<SafetensorsFile> open_peft_tensors(const std::filesystem::path& folder,
                                                 Problems& problems);

/// Appends a Problem for every tensor of `adapters` (adapter_table of cost_models/adapters.h) that
/// the file has not, or has in another shape, and for every other one. True when none was appended.
bool check_peft_tensors(const SafetensorsFile& file, const std::filesystem::path& folder,
                        const ParameterTable& adapters, Problems& problems);

struct PeftFolderContents {
  Lora lora;                        // its targets are the names of modules
  std::string base_model;           // folder or name of the model that the adapters stand beside
  std::vector<TensorSpec> tensors;  // in the order in which they are asked for
  std::filesystem::path tokenizer_from;            // folder whose tokenizer files are copied
  std::map<std::string, std::string> extra_files;  // by name
};

/// Writes `folder` (which must not exist), which appears only when complete. `source` is asked for
/// every tensor once, in order. False with Problems when anything fails; nothing is left then.
bool write_peft_folder(const std::filesystem::path& folder, const PeftFolderContents& contents,
                       const TensorSource& source, Problems& problems);

}  // namespace tessera
