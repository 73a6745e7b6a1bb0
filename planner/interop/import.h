// Another tool's configuration as a plan: a hand-written plan, to be checked and priced like any.
//
// What the file does not determine is taken from the tool's defaults or from ImportOptions, and
// every such assumption is a note. Keys that the tool itself ignores are listed. Pure but for
// reading the models that the file names.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cost_models/documents/problem_list.h"
#include "planner/interop/config/config_values.h"
#include "planner/interop/config/imported.h"

namespace tessera {

/// verl (flattened or Hydra YAML, override lists, .sh files), arguments of Megatron-LM, and of vLLM
/// and SGLang servers. nullopt and all Problems of the file otherwise.
std::optional<Imported> import_config(std::string_view text, const std::string& file,
                                      const ImportOptions& options, Problems& problems);

/// The same of what read_config_values made of the file.
std::optional<Imported> import_config(ConfigValues config, const ImportOptions& options,
                                      Problems& problems);

}  // namespace tessera
